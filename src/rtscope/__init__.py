"""How late a Linux machine wakes real-time threads, and what may be promised."""

from rtscope.host.version import __version__ as __version__
