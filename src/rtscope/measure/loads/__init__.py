"""
The loads that a machine is measured under, and their commands.

Nothing here starts a process or reads a machine: free memory and space come in as
values, and an argument vector goes out.

    loads.toml      the loads
    stressors.toml  stressors of stress-ng that a machine survives
    command.py      loads by name, and their commands
    stream.py       what came of a load that is a stream of events
"""

from rtscope.measure.loads.command import STRESSOR as STRESSOR
from rtscope.measure.loads.command import STRESSOR_NAME as STRESSOR_NAME
from rtscope.measure.loads.command import FreeStorage as FreeStorage
from rtscope.measure.loads.command import Load as Load
from rtscope.measure.loads.command import LoadCommand as LoadCommand
from rtscope.measure.loads.command import LoadPlace as LoadPlace
from rtscope.measure.loads.command import Need as Need
from rtscope.measure.loads.command import SignsOfLife as SignsOfLife
from rtscope.measure.loads.command import get_load as get_load
from rtscope.measure.loads.command import load_names as load_names
from rtscope.measure.loads.command import make_command as make_command
from rtscope.measure.loads.command import operations_of as operations_of
from rtscope.measure.loads.command import safe_stressors as safe_stressors
from rtscope.measure.loads.command import throughput_of as throughput_of
from rtscope.measure.loads.command import unsafe_stressors as unsafe_stressors
from rtscope.measure.loads.stream import Stream as Stream
from rtscope.measure.loads.stream import errors_of as errors_of
from rtscope.measure.loads.stream import stream_caveats as stream_caveats
from rtscope.measure.loads.stream import stream_of as stream_of
