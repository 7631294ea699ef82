"""What `setup/packages` says while it installs, with a fake apt-get."""

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "setup" / "packages"
PROGRAMS = ("sh", "cat", "cut", "env", "grep", "mktemp", "rm", "tail", "tee", "touch")

FAKE = """\
#!/bin/sh
case $* in *--simulate*) exit 0 ;; esac
echo 'Reading package lists...'
case $* in *update*) exit 0 ;; esac
echo '0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.'
echo 'Need to get 48.2 MB of archives.'
echo 'E: no space left'
[ -e "$HERE/works" ] || exit 100
touch "$HERE/git" "$HERE/mmdebstrap"
chmod +x "$HERE/git" "$HERE/mmdebstrap"
"""


def install(here: Path) -> subprocess.CompletedProcess[str]:
    for name in (*PROGRAMS, "chmod", "tr"):
        path = shutil.which(name)
        assert path is not None
        (here / name).symlink_to(path)
    for name, text in {"apt-get": FAKE, "id": "#!/bin/sh\necho 0\n"}.items():
        (here / name).write_text(text)
        (here / name).chmod(0o755)
    script = SCRIPT.read_text().replace(
        "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin", ""
    )
    return subprocess.run(
        [str(here / "sh"), "-c", script, "packages", "fresh"],
        env={"PATH": str(here), "HERE": str(here), "TMPDIR": str(here)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_apt_talks_to_a_log_and_the_user_sees_how_much_there_is(tmp_path: Path) -> None:
    (tmp_path / "works").touch()
    done = install(tmp_path)

    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1] == "installing 2 packages, 48.2 MB to download"
    assert "Reading" not in done.stdout + done.stderr
    assert list(tmp_path.glob("apt-??????*")) == [], "a log that nobody needs"


def test_what_apt_said_is_shown_when_it_fails(tmp_path: Path) -> None:
    done = install(tmp_path)

    (log,) = (path for path in tmp_path.glob("apt-??????") if path.name != "apt-get")
    assert done.returncode == 2
    assert "E: no space left" in done.stderr
    assert f"all that apt said is in {log}; as root, type:" in done.stderr
    assert "apt-get update && apt-get install -y" in done.stderr
    assert "Reading package lists" in log.read_text()
