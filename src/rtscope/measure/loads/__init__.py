"""
The loads that a machine is measured under, and their commands.

Nothing here starts a process or reads a machine: free memory and space come in as
values, and an argument vector goes out.

    loads.toml      the loads
    stressors.toml  stressors of stress-ng that a machine survives
    catalogue.py    both tables, read
    command.py      the command of a load, within memory and space; its throughput
"""

from rtscope.measure.loads.catalogue import STRESSOR as STRESSOR
from rtscope.measure.loads.catalogue import STRESSOR_NAME as STRESSOR_NAME
from rtscope.measure.loads.catalogue import Load as Load
from rtscope.measure.loads.catalogue import Need as Need
from rtscope.measure.loads.catalogue import SignsOfLife as SignsOfLife
from rtscope.measure.loads.catalogue import get_load as get_load
from rtscope.measure.loads.catalogue import load_names as load_names
from rtscope.measure.loads.catalogue import safe_stressors as safe_stressors
from rtscope.measure.loads.catalogue import unsafe_stressors as unsafe_stressors
from rtscope.measure.loads.command import FreeStorage as FreeStorage
from rtscope.measure.loads.command import LoadCommand as LoadCommand
from rtscope.measure.loads.command import LoadPlace as LoadPlace
from rtscope.measure.loads.command import make_command as make_command
from rtscope.measure.loads.command import operations_of as operations_of
from rtscope.measure.loads.command import throughput_of as throughput_of
