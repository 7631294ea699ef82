"""
A kernel as a virtual board takes it, without what its boot would only undo.

A third of a boot's instructions unpacked the kernel and checked the signatures of its
modules. So QEMU gets the unpacked kernel, which it enters as a hypervisor does (PVH:
Documentation/arch/x86/boot.rst, an ELF note of XEN_ELFNOTE_PHYS32_ENTRY), and modules
lose what `scripts/sign-file` has appended. Their code is not touched; a kernel that
asks for signatures (CONFIG_MODULE_SIG) is tainted by a module without one.
"""

import io
import struct

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from rtscope.boards.parts.initrd import File, pack, unpack
from rtscope.host.errors import UsageError
from rtscope.machine.kernelimage import unpacked_image

_PHYS32_ENTRY = 18
_MAGIC = b"~Module signature appended~\n"
_ABOUT = ">8xI"
"""`struct module_signature` (include/linux/module_signature.h): its last field is how
long the signature before it is."""


def entered_unpacked(image: bytes) -> bytes | None:
    """Return the x86-64 kernel in an image as ELF; None if QEMU cannot enter it."""
    try:
        plain = unpacked_image(image, source="kernel")
        if plain.startswith(b"\x7fELF") and _has_entry(plain):
            return plain
    except (UsageError, ELFError):
        pass  # the boot tells what is wrong with it
    return None


def _has_entry(elf: bytes) -> bool:
    return any(
        note["n_name"] == "Xen" and note["n_type"] == _PHYS32_ENTRY
        for segment in ELFFile(io.BytesIO(elf)).iter_segments("PT_NOTE")
        for note in segment.iter_notes()
    )


def without_signature(module: bytes) -> bytes:
    """Return a module without the signature at its end, if there is one."""
    end = len(module) - len(_MAGIC) - struct.calcsize(_ABOUT)
    if not module.endswith(_MAGIC) or end < 0:
        return module
    (size,) = struct.unpack_from(_ABOUT, module, end)
    return module[: end - size] if size <= end else module


def without_signatures(archive: bytes) -> bytes:
    """Return an archive of modules with none of their signatures."""
    entries = unpack(archive)
    return pack(
        {
            path: File(without_signature(entry.content), entry.runs)
            if isinstance(entry, File)
            else entry
            for path, entry in entries.items()
        }
    )
