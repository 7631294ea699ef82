"""Redaction by kinds: the spellings that people and programs have, no false one."""

import json

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.machine.redaction import GONE, Redactions, redact_files, redact_text
from rtscope.record.model import record_from_json, record_to_json
from rtscope.verbs.pack.redact import Redaction

HOME = "/home"

SECRETS = [
    "cifsroot=//h/s,username=bob,password=S3cret",
    "cifsroot=//h/s,password=S3cret,vers=3",
    "root=http://h/i?token=S3cret",
    "root=http://h/i?a=1&access_token=S3cret&b=2",
    "https://h.blob.example/i?sv=2024&sig=S3cret%3D",
    "password='a S3cret'",
    'password="a S3cret',
    "password='a S3cret\nnext=1",
    r'password="a \" S3cret"',
    "Authorization: Bearer S3cret",
    "Authorization: Basic S3cret==",
    "authorization=Bearer S3cret",
    "curl -H 'Authorization: token S3cret' http://h",
    "Bearer abc123def456ghiS3cret",
    "cred=S3cret",
    "creds=S3cret",
    "cookie=S3cret",
    "Set-Cookie: id=S3cret; path=/",
    "session=S3cret",
    "login=S3cret",
    "wpa_passphrase=S3cret",
    'psk="my S3cret"',
    "802-11-wireless-security.psk:S3cret",
    "#psk=S3cret",
    "wep_key0=S3cret",
    "sae_password=S3cret",
    "nmcli dev wifi connect x password S3cret",
    "nmcli con modify x wifi-sec.psk S3cretlong",
    "iwconfig wlan0 key s:S3cret",
    "sshpass -p S3cret ssh h",
    "sshpass -pS3cret ssh h",
    "curl -s -u bob:S3cret http://h",
    "curl --user bob:S3cret http://h",
    "mysql -u root -pS3cret db",
    "openssl x -passin pass:S3cret",
    "prog --password S3cret",
    "prog --password=S3cret",
    "prog --password 'a S3cret'",
    "prog --api-key S3cret",
    "prog --psk=S3cret",
    "http://me:S3cret@h/",
    "http://me:p@S3cret@h/",
    "https://S3cret@git.example/x",
    "ftp://me:S3cret@h:21/x",
    "netroot=iscsi:u:S3cret@h::3260",
    "rd.iscsi.in.password=S3cret",
    "password: S3cret",
    "password = S3cret",
    '{"password": "S3cret"}',
    "{'api_key': 'S3cret'}",
    "api_key = 'S3cret'",
    "AWS_SECRET_ACCESS_KEY=S3cret",
    "PGPASSWORD=S3cret psql",
    "export TOKEN=S3cret",
    "X-Api-Key: S3cret",
    "client_secret=S3cret&x=1",
    "passcode: S3cret",
    "systemd.setenv=A='x S3cret'",
    "tokens ghp_S3cretabcdefghij0123456789abcdefghij",
    "github_pat_S3cretabcdefghij0123456789",
    "glpat-S3cretabcdefghij012",
    "AKIAS3CRET7890ABCDEF",
    "xoxb-123456789012-S3cretabcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0S3cret.abcDEF_-123",
    "sk_live_S3cretabcdefghij0123",
    "AIzaS3cretabcdefghijklmnopqrstuvwxyz0123",
    "npm_S3cretabcdefghijklmnopqrstuvwxyz0123",
    "hvs.S3cretabcdefghijklmnopqrst",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nS3cret\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nS3cret",
    "-----BEGIN RSA PRIVATE KEY-----\nA: b-c\nS3cret\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN EC PRIVATE KEY-----S3cret-----END EC PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nS3cret\n-----END PGP",
    "AGE-SECRET-KEY-1S3CRETABCDEFGHIJKLMNOPQRSTUV",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_taken_out_however_it_is_written(text: str) -> None:
    tally = Redactions()
    left = redact_text(text, tally)

    assert "s3cret" not in left.lower()
    assert GONE in left
    assert sum(tally.counts.values()) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "ifname=eth0:00:11:22:33:44:55",
        "rd.znet_ifname=lan:00:11:22:33:44:55 x",
        "link/ether 00:11:22:33:44:55 brd",
        "e1000 0000:00:19.0 eth0: (PCI Express) 00:11:22:33:44:55",
        "mac=001122334455",
        "MAC address: 001122334455",
        '"mac": "001122334455"',
        "hwaddr 00-11-22-33-44-55",
        "HWaddr 0011.2233.4455.",
        "mac 001122-334455",
        "mac: 00 11 22 33 44 55",
        "enx001122334455: renamed from eth0",
        "wlx001122334455",
        "BOOTIF=01-00-11-22-33-44-55",
        "[00:11:22:33:44:55]",
        "x:00:11:22:33:44:55:66:77 x",
        "ib0: " + ":".join(["80", "11", "22", "33", "44", "55"] + ["00"] * 14),
    ],
)
def test_a_hardware_address_is_taken_out(text: str) -> None:
    tally = Redactions()
    left = redact_text(text, tally).lower()

    assert all(part not in left for part in ("2233", "22:33", "22-33", "22 33"))
    assert tally.counts == {"hardware addresses": 1}


@pytest.mark.parametrize(
    "text",
    [
        "usb 1-1: SerialNumber: W0RD42",
        "SerialNumber W0RD42",
        "Serial Number W0RD42",
        "S/N: W0RD42",
        "SN: W0RD42",
        "serial no. W0RD42",
        "serial_number=W0RD42",
        '"serial": "W0RD42"',
        "Asset Tag: W0RD42",
        "Service Tag: W0RD42",
        "androidboot.serialno=W0RD42",
        "root=PARTUUID=W0RD42",
        "root=PARTUUID=W0RD42-02 ro",
        "root=UUID=W0RD42",
        "root=LABEL=W0RD42",
        'UUID="W0RD42" TYPE="ext4"',
        "root=/dev/disk/by-id/ata-Samsung_SSD_W0RD42-part2",
        "root=/dev/disk/by-label/W0RD42",
    ],
)
def test_what_names_one_machine_or_disk_is_taken_out(text: str) -> None:
    tally = Redactions()

    assert "W0RD42" not in redact_text(text, tally)
    assert sum(tally.counts.values()) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("wlan.ssid=W0RD42", "identifiers"),
        ('ssid="my W0RD42"', "identifiers"),
        ("    ssid='my W0RD42'", "identifiers"),
        ("SSID: my W0RD42", "identifiers"),
        ('wlan0 ESSID:"my W0RD42"', "identifiers"),
        ('{"ssid": "W0RD42"}', "identifiers"),
        ("wifi-ssid=W0RD42", "identifiers"),
        ("IMEI: 490154203237518", "serial numbers"),
        ("imei=49-015420-323751-8", "serial numbers"),
        ('"imsi": "310150123456789"', "serial numbers"),
        ("ICCID 8991101200003204510", "serial numbers"),
        ("IMEISV#4901542032375101", "serial numbers"),
        ("inet6 fe80::211:22ff:feaa:bbcc/64", "hardware addresses"),
        ("2001:db8::211:22ff:feaa:bbcc", "hardware addresses"),
        ("2001:db8:1:2:11:22ff:fe33:4455", "hardware addresses"),
        ("ip=[fe80::1:2ff:fe33:4455]:::64::eth0:off", "hardware addresses"),
        ("FE80::211:22FF:FEAA:BBCC%eth0", "hardware addresses"),
    ],
)
def test_a_network_a_modem_and_an_address_made_of_hardware_are_taken_out(
    text: str, kind: str
) -> None:
    tally = Redactions()
    left = redact_text(text, tally)

    assert tally.counts == {kind: 1}
    assert not any(word in left for word in ("W0RD42", "4901", "49-0", "3101", "8991"))
    assert ":fe" not in left.lower()


@pytest.mark.parametrize(
    "text", ["bssid_count: 3", "ssids: 2 found", "imei_check=y", "ff:fe", "a ssid, set"]
)
def test_words_that_only_look_like_those_stay(text: str) -> None:
    assert redact_text(text, Redactions()) == text


@pytest.mark.parametrize(
    "text",
    [
        "wwn-0x5000c500a1b2c3d4",
        "naa.5000c500a1b2c3d4",
        "eui.5000c500a1b2c3d4",
        "WWN: 0x5000c500a1b2c3d4",
        "port_name = 0x5000c500a1b2c3d4",
        "sas_address(0x5000c500a1b2c3d4)",
        "EXT4-fs (sda2): mounted filesystem 5000c500-a1b2-c3d4-a1b2-5000c500a1b2 ro",
        "rd.luks.uuid=luks-5000c500-a1b2-c3d4-a1b2-5000c500a1b2",
        "machine-id: 5000c500a1b2c3d45000c500a1b2c3d4",
        "_BOOT_ID=5000c500a1b2c3d45000c500a1b2c3d4",
        "systemd.machine_id=5000c500a1b2c3d45000c500a1b2c3d4",
    ],
)
def test_a_world_wide_name_or_an_id_is_taken_out(text: str) -> None:
    tally = Redactions()

    assert "c500" not in redact_text(text, tally)
    assert tally.counts == {"identifiers": 1}


@pytest.mark.parametrize(
    "text",
    [
        "Linux version 6.12.48-rt5 (gcc 14.2.0-19) #1 SMP PREEMPT_RT 6.12.0.1",
        "RIP: 0010:native_safe_halt+0xb/0x10 RSP: 0018:ffffb0e4c00a3ed8",
        "pci 0000:00:1f.2: [8086:2922] type 00 class 0x010601",
        "00:1f.2 SATA controller [0106]: Intel 82801IR [8086:2922] (rev 02)",
        f"kernel_digest {'3b1f8a0c' * 8} ffffffff81a0b0e4",
        "iommu.passthrough=1 usbcore.authorized_default=0 vconsole.keymap=de bypass=1",
        "Serial: 8250/16550 driver, 4 ports, IRQ sharing enabled",
        "serial8250: ttyS0 at I/O 0x3f8 (irq = 4, base_baud = 115200) is a 16550A",
        "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0,1",
        "systemd[1]: Started Forward Password Requests to Wall Directory Watch.",
        "Key type trusted registered; Loaded X.509 cert 'Debian Secure Boot CA: 6f'",
        "random: crng init done; basic functionality of the board; bearer of news",
        "audit: type=1701 auid=0 ses=1 pid=1 comm=x sig=11 res=1",
        "12:34:56.789 2026-11-27T18:00:00+01:00 ff,ffffffff 0-3,8 a0 b1",
        "BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] usable",
        "spin=1 mapping=2 pinctrl.x=1 monkey=2 std::vector<int>::add(x)",
        "initcall_blacklist=sampling_init mac80211: module verification ok",
    ],
)
def test_what_a_check_needs_stays(text: str) -> None:
    tally = Redactions()

    assert redact_text(text, tally) == text
    assert tally.counts == {}


@pytest.mark.parametrize(
    "path",
    [
        "/sys/class/dmi/id/product_serial",
        "/sys/class/dmi/id/board_serial",
        "/sys/class/dmi/id/product_uuid",
        "/sys/class/dmi/id/chassis_asset_tag",
        "/proc/device-tree/serial-number",
        "/etc/machine-id",
        "/proc/sys/kernel/random/boot_id",
        "/sys/block/sda/device/wwid",
    ],
)
def test_a_file_that_holds_an_identifier_alone_is_emptied_of_it(path: str) -> None:
    tally = Redactions()
    kept = redact_files({path: b"W0RD42\n", "/proc/version": b"Linux 6.12\n"}, tally)

    assert kept == {path: f"{GONE}\n".encode(), "/proc/version": b"Linux 6.12\n"}


def packed(text: str, *names: str) -> str:
    return Redaction(b"salt", names, Redactions()).text(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("from 10.20.30.40.", "10.20.30.40"),
        ("from 10.20.30.40:22", "10.20.30.40"),
        ("10.20.30.40-10.20.30.99", "10.20.30.99"),
        ("::ffff:10.20.30.40", "10.20.30.40"),
        ("ip=10.20.30.40::10.20.30.1:255.255.255.0:kiln:eth0", "kiln"),
        ("ip=10.20.30.40::10.20.30.1:255.255.255.0:kiln:eth0", "10.20.30.1"),
        ("[2001:db8::7]:22", "2001:db8::7"),
        ("fe80::1234%eth0", "fe80::1234"),
        ("inet6 addr:2001:db8::7/64", "2001:db8::7"),
        ("2001:0db8:0:0:0:0:0:7", "2001:0db8"),
        (f"{HOME}/bob/x", "bob"),
        (f"{HOME}/bob", "bob"),
        ("/run/media/bob/stick", "bob"),
        ("/Users/bob/x", "bob"),
        ("C:\\Users\\bob\\x", "bob"),
        ("mail bob@mail.example.", "bob"),
        ("username=bob,vers=3", "bob"),
        ("systemd.hostname=kiln", "kiln"),
        (" Static hostname: kiln", "kiln"),
        ("systemd[1]: Hostname set to <kiln>.", "kiln"),
        ("on kiln.lab.example at", "lab.example"),
    ],
)
def test_a_packed_result_has_another_name_instead(text: str, word: str) -> None:
    left = packed(text, "kiln")

    assert word not in left
    assert packed(text, "kiln") == left  # the same one everywhere
    assert packed(left) == left  # and it is not renamed again


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1 ::1 0.0.0.0", "Linux 6.12.48 qemu-10.0.2.1 v1.2.3.4", "at 12:34:56"],
)
def test_what_names_nobody_stays_in_a_packed_result(text: str) -> None:
    assert packed(text) == text


def test_a_redacted_record_is_still_the_record_of_its_measurement() -> None:
    kept = on_board(record([thread([5_000, 7_000, 9_000])]))
    document = Redaction(b"salt", ("kiln",), Redactions()).value(
        json.loads(record_to_json(kept))
    )

    assert (
        record_from_json(json.dumps(document).encode(), name="r").result == kept.result
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "pass",
        "-",
        "00:",
        "key=",
        '"',
        "://",
        "eyJ",
        "-----BEGIN ",
        "mac ",
        "ip=:",
    ],
)
def test_no_text_takes_long_to_redact(piece: str) -> None:
    """Patterns that go back over a whole text would take minutes here."""
    text = piece * (200_000 // len(piece))

    assert len(packed(text)) > 0
