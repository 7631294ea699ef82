"""
The events that wake the measuring threads: a timer, another thread, a packet.

Nothing here starts a process or reads a machine.

    events.toml     the events
    event.py        events by name, their options and their list
"""

from rtscope.measure.events.event import LIST as LIST
from rtscope.measure.events.event import Event as Event
from rtscope.measure.events.event import describe as describe
from rtscope.measure.events.event import event_names as event_names
from rtscope.measure.events.event import get_event as get_event
from rtscope.measure.events.event import parse_event as parse_event
