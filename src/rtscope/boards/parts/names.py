"""What the parts of a board, and the files in them, are called."""

PLUGIN = "rtscope-plugin.so"
AGENT_ARCHIVE = "agent.cpio"
USERLAND_ARCHIVE = "userland.cpio"
FILES_ARCHIVE = "files.cpio"

FILES_KIND = "files"
"""How the name of the part with the files of a campaign begins."""
