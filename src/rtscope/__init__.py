"""How late a Linux machine wakes real-time threads, and what may be promised."""

__version__ = "0.1.0"
