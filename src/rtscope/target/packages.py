"""How a missing program is installed on a machine, in the words of its distribution."""

import shlex

from rtscope.machine.reader import Reader, text_of

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")

# ID or ID_LIKE of os-release(5) -> what to type.
_COMMANDS = {
    "debian": "apt install {}",
    "ubuntu": "apt install {}",
    "alpine": "apk add {}",
    "fedora": "dnf install {}",
    "rhel": "dnf install {} (from EPEL)",
    "suse": "zypper install {}",
    "opensuse": "zypper install {}",
    "arch": "pacman -S {}",
    "openwrt": "opkg update && opkg install {}",
    "buildroot": "it belongs into the image: BR2_PACKAGE_{upper}=y",
    "poky": "it belongs into the image: IMAGE_INSTALL:append = ' {}'",
}


def how_to_install(reader: Reader, program: str) -> str:
    """Return what to type on the machine; a guess that says so if it is unknown."""
    files = reader.read_many(_OS_RELEASE)
    for path in _OS_RELEASE:
        for name in _names(text_of(files[path]) or ""):
            if command := _COMMANDS.get(name):
                upper = program.upper().replace("-", "_")
                return command.format(program, upper=upper)
    return f"with its package manager, such as: apt install {program}"


def _names(os_release: str) -> list[str]:
    """Return ID and then ID_LIKE, which lists relatives, nearest first."""
    values = {}
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        values[key.strip()] = value
    try:
        found = shlex.split(f"{values.get('ID', '')} {values.get('ID_LIKE', '')}")
    except ValueError:  # not quoted as os-release(5) wants it
        return []
    return " ".join(found).lower().split()
