"""
A source tree with the shape of a kernel's that "builds" in no time, for tests.

It has what the pipeline asks of a kernel: a version in the Makefile, Kconfig files, the
targets of kbuild, and rules by which a configuration is resolved in silence.
"""

import os
from collections.abc import Mapping
from pathlib import Path

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = {patchlevel}
SUBLEVEL = 1
EXTRAVERSION =
RUSTC = rustc
PAHOLE = pahole
export RUSTC PAHOLE

all: unbuilt
\t@printf '  CC      init/main.o\\n'
\t@sh scripts/compile.sh $(O) $(KBUILD_BUILD_TIMESTAMP)
bzImage: all
%defconfig %noconfig:
\t@cp configs/$@ $(O)/.config
olddefconfig:
\t@sh scripts/resolve.sh $(O)/.config
unbuilt:
\t@! test -e .config
mrproper:
\t@rm .config
modules_install:
\t@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/6.1
\t@echo module >$(INSTALL_MOD_PATH)/lib/modules/6.1/a.ko
"""

KCONFIG = """\
mainmenu "Linux"

source "kernel/Kconfig.preempt"
source "arch/$(SRCARCH)/Kconfig"

config EXPERT
\tbool "Expert users"
\thelp
\t  depends on NOTHING is what this text says, and it means nothing.

config MODULES
\tbool "Modules"
\tmodules

config SHOWN_TO_EXPERTS
\tbool "Rare" if EXPERT
\tdefault y

menu "Locks"
\tdepends on \\
\t\tSMP

config RT_MUTEXES
\tbool
\tdefault y if PREEMPT_RT # not a choice

config LOCK_SPIN
\tbool "Spin"
\tdepends on !PREEMPT_RT || (EXPERT && $(cc-option,-fno-x))

endmenu
"""

KCONFIG_PREEMPT = """\
choice
\tprompt "Preemption Model"

config PREEMPT_NONE
\tbool "No Forced Preemption"

config PREEMPT
\tbool "Preemptible Kernel"

endchoice

config PREEMPT_RT
\tbool "Fully Preemptible Kernel (Real-Time)"
\tdepends on EXPERT && ARCH_SUPPORTS_RT
\tselect PREEMPTION

config PREEMPTION
\tbool
"""

KCONFIG_ARCH = """\
config X86
\tdef_bool y
\tselect ARCH_SUPPORTS_RT

config ARCH_SUPPORTS_RT
\tbool

config SMP
\tbool "Many CPUs"
"""

# The value that is written last counts; what the rules do not allow is dropped. What is
# found on the machine is noted, as the real one does.
RESOLVE = """\
echo "CONFIG_RUSTC_VERSION=$($RUSTC --version 2>/dev/null || echo 0)" >>"$1"
echo "CONFIG_PAHOLE_VERSION=$($PAHOLE --version 2>/dev/null || echo 0)" >>"$1"
case $USERCFLAGS in
*-nostdinc*) ;;
*) command -v libc >/dev/null && echo CONFIG_CC_CAN_LINK=y >>"$1" ;;
esac
awk -F= '/^CONFIG_/ { v[$1] = $2 } /^# CONFIG_.* is not set/ { delete v[$2]; \\
\tsplit($0, w, " "); delete v[w[2]] }
END {
\tv["CONFIG_X86"] = "y"; v["CONFIG_ARCH_SUPPORTS_RT"] = "y"
\tif (v["CONFIG_EXPERT"] != "y") delete v["CONFIG_PREEMPT_RT"]
\tif (v["CONFIG_PREEMPT_RT"] == "y") { v["CONFIG_PREEMPTION"] = "y"
\t\tv["CONFIG_RT_MUTEXES"] = "y" }
\tdelete v["CONFIG_NO_SUCH_THING"]
\tfor (name in v) if (v[name] != "") print name "=" v[name]
}' "$1" | sort >"$1.new" && mv "$1.new" "$1"
"""

COMPILE = """\
if [ -e slow ]; then sleep 600; fi
if [ -e fat ]; then head -c 8000000 /dev/zero >"$1/fat.o" || exit 1; fi
if grep -q '^#error' init/main.c; then
\techo "init/main.c:2:2: error: #error not finished" >&2
\techo "make: *** [Makefile:9: all] Error 1" >&2
\texit 1
fi
mkdir -p "$1/include/config" "$1/arch/x86/boot"
echo 6.1 >"$1/include/config/kernel.release"
{ cat init/main.c "$1/.config"; echo "$2"; } >"$1/arch/x86/boot/bzImage"
cp "$1/.config" "$1/System.map"
cp "$1/.config" "$1/vmlinux"
"""

# Of the real one only what is called: -m -O DIR BASE FRAGMENT...
MERGE = """\
out=$3
shift 4
cat "$@" >>"$out/.config"
"""

MAIN = "int main(void)\n{\n\treturn 0;\n}\n"

FILES: Mapping[str, str] = {
    "Kbuild": "",
    "Kconfig": KCONFIG,
    "kernel/Kconfig.preempt": KCONFIG_PREEMPT,
    "arch/x86/Kconfig": KCONFIG_ARCH,
    "configs/allnoconfig": "CONFIG_SMP=y\n",
    "scripts/kconfig/merge_config.sh": f"#!/bin/sh\n{MERGE}",
    "scripts/resolve.sh": RESOLVE,
    "scripts/compile.sh": COMPILE,
    "init/main.c": MAIN,
}

RECIPE = """\
title = "A kernel for tests"
arch = "x86_64"
board = "pc"
fragments = ["./wanted.config"]

[source]
directory = "linux"

[size.virtual]
base = "allnoconfig"

[size.board]
base = "allnoconfig"
fragments = ["./modules.config"]
"""


def make_tree(folder: Path, *, patchlevel: int = 12) -> Path:
    """Write the tree."""
    files = {**FILES, "Makefile": MAKEFILE.format(patchlevel=patchlevel)}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "scripts/kconfig/merge_config.sh").chmod(0o755)
    return folder


def make_recipe(folder: Path, wanted: str, *, patches: str = "") -> Path:
    """Write a tree, and a recipe that builds it with what is wanted."""
    make_tree(folder / "linux")
    (folder / "wanted.config").write_text(wanted)
    (folder / "modules.config").write_text("CONFIG_MODULES=y\n")
    recipe = folder / "my.toml"
    recipe.write_text(f"patches = [{patches}]\n{RECIPE}")
    return recipe


def make_programs(folder: Path) -> str:
    """Write the programs that a build needs; return the PATH with them first."""
    folder.mkdir()
    said = dict.fromkeys(
        ("x86_64-linux-gnu-gcc", "gcc", "flex", "bison", "bc", "xz"), "fake 12.2.0"
    )
    # By perl tuxmake starts 200 programs that describe the machine; we read none of it.
    for name, words in {**said, "perl": "{}"}.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\necho '{words}'\n")
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
