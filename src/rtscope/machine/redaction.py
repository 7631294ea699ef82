"""
Take out of texts what is nobody else's business, by a table of kinds.

For what is sent to others: a captured machine, a packed result. `OF_MACHINES` is what
both take out; `OF_PEOPLE` names and network addresses, which a packed result replaces.

A kind is a list of patterns; what its group `x` matches is taken out. Every repetition
in a pattern is bounded or ends at its line: a text may be hostile.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

GONE = "REDACTED"

NO_PROMISE = (
    "redaction is by patterns of these kinds, and a pattern can miss something: look "
    "at it before you send it"
)


@dataclass(slots=True)
class Redactions:
    """How much was taken out, by kind."""

    counts: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str, number: int) -> None:
        """Add to a kind."""
        if number:
            self.counts[kind] = self.counts.get(kind, 0) + number


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of what is taken out."""

    name: str
    """In the plural, as a tally has it."""
    patterns: tuple[re.Pattern[str], ...]
    stays: re.Pattern[str] | None = None
    """A match that it fits stays as it is."""
    is_one: Callable[[str], bool] = bool
    """Tells of what a pattern found whether it is one."""


Replace = Callable[[Kind, str], str]
"""Return what stands there instead."""


def _kind(name: str, *patterns: str, stays: str = "") -> Kind:
    return Kind(
        name,
        tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns),
        re.compile(stays) if stays else None,
    )


# A value: in quotes, which may lack their end, or a word without what closes around it.
_VALUE = (
    r"(?P<x>\"(?:\\.|[^\"\\\n])*(?:\"|$)|'(?:\\.|[^'\\\n])*(?:'|$)"
    r"|[^\s\"'=]\S*?(?=[\"'),;\]}]*(?:\s|$)))"
)
_BEFORE = r"(?i)(?<![\w.:\[\]-])[\w.:\[\]-]{0,200}?"
_AFTER = r"[\w.\]-]{0,60}[\"']?"
_STRONG = (
    r"(?:pass(?:wd|word|phrase|code)|secret|token|credentials?|psk|cookie"
    r"|(?:api|access|private|shared|encryption)[_-]?key)"
)
# No group of an address like this one is in front of it.
_NO_GROUP = "".join(rf"(?<!\b[0-9A-Fa-f]{{{n}}}:)" for n in range(1, 5))
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

OF_MACHINES = (
    _kind(
        "private keys",
        r"(?P<x>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]|-(?!----))*(?:-----END [A-Z0-9 ]{0,40}-----)?)",
        r"\b(?P<x>AGE-SECRET-KEY-1[0-9A-Z]{20,})",
    ),
    _kind(
        "secrets",
        # Of an address, also netroot=iscsi:USER:PASSWORD@HOST.
        r"://(?P<x>[^\s/\"'?#]{1,500})@",
        r"(?i)\biscsi:(?P<x>[^\s\"'@]{1,200})@",
        r"(?i)(?<!\w)authorization[\"']?\s?[:=]\s?(?P<x>\S[^\n\"']*)",
        r"(?i)(?<!\w)(?:set-)?cookie[\"']?\s?:\s?(?P<x>\S[^\n\"']*)",
        r"(?i)\b(?:bearer|basic)[ \t]+(?P<x>(?=\S{0,80}[\d=])[\w.~+/=-]{12,})",
        # By what they begin with.
        r"\b(?P<x>gh[pousr]_\w{16,}|github_pat_\w{16,}|gl[a-z]{2,6}-[\w-]{16,}"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}"
        r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|[sr]k_(?:live|test)_\w{16,}"
        r"|sk-[\w-]{20,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|npm_\w{30,}|pypi-[\w-]{30,}"
        r"|hf_\w{30,}|hv[sb]\.[\w-]{20,}|tskey-[\w-]{16,}|dop_v1_\w{30,}"
        r"|SG\.[\w-]{16,}\.[\w-]{16,})",
        # Parameters of the kernel and of programs, options of mounts, variables.
        _BEFORE + r"(?:pass(?:wd|word|phrase|code)?|secret|token|credentials?|creds?"
        r"|psk|key|auth|nonce|cookie|session|login)" + _AFTER + "=" + _VALUE,
        r"(?i)(?<!\w)(?:[\w.:-]{0,60}[.:_-])?(?:pw|pwd|pin)=" + _VALUE,
        r"(?i)systemd\.setenv=[\w.-]{1,80}=" + _VALUE,
        _BEFORE + _STRONG + _AFTER + r"[ \t]{0,4}[:=][ \t]{0,4}" + _VALUE,
        r"[?&](?i:sig|signature|code|jwt|sv|ticket)=(?P<x>[^&\s\"'#]+)",
        # Behind an option, and words that a program takes so.
        r"(?i)(?<![\w-])--[\w-]{0,40}(?:pass(?:wd|word|phrase|code)?|secret|token|key|psk"
        r"|credentials?|cookie)[\w-]{0,40}[ ]+(?!-)" + _VALUE,
        r"\bsshpass[ ]+-p[ ]*" + _VALUE,
        r"\b(?:curl|wget)\b[^\n]*?[ ](?:-u|--user)[ =]" + _VALUE,
        r"\bmysql\w*\b[^\n]*?[ ]-p(?P<x>[^\s-]\S*)",
        r"\bnmcli\b[^\n]*?[ ](?:password|[\w.-]{0,40}psk)[ ]+" + _VALUE,
        r"\biwconfig\b[^\n]*?[ ]key[ ]+" + _VALUE,
        r"(?i)\bpass:" + _VALUE,
        # Words of the kernel's own that hold no secret although they look so.
        stays=r"(?i)[\w.:-]*(?:keymap|keyboard|keycode|keyring|hotkey|monkey|bypass"
        r"|passthr|compass|passive|authori(?:zed|ty)|author\b)[\w.-]*[\"']?\s*[=:]"
        r"|--keymap",
    ),
    _kind(
        "hardware addresses",
        rf"(?<![0-9A-Fa-f.]){_NO_GROUP}(?P<x>"
        r"(?:[0-9A-Fa-f]{2}[:-]){5,7}[0-9A-Fa-f]{2}"
        r"|(?:[0-9A-Fa-f]{2}:){19}[0-9A-Fa-f]{2}"
        r"|(?:[0-9A-Fa-f]{1,2}:){5}[0-9A-Fa-f]{1,2}"
        r")(?![0-9A-Fa-f:]|\.\d)",
        r"(?<![0-9A-Fa-f.])(?P<x>(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4})(?!\w|\.\w)",
        r"(?i)\b(?:[\w.-]{0,30}mac(?:[ _-]?addr(?:ess)?)?"
        r"|(?:hw|ll|link|ether|eth)?addr(?:ess)?|ether|bootif)"
        r"[\"']?(?:[ ]?[:=][ ]?|[ ])[\"']?(?:01-?)?"
        r"(?P<x>[0-9a-f]{12}\b|[0-9a-f]{6}-[0-9a-f]{6}\b"
        r"|(?:[0-9a-f]{2}[ ]){5}[0-9a-f]{2}\b)",
        r"\b(?:en|wl|ww)x(?P<x>[0-9a-f]{12})\b",
        # The half of an address of IPv6 that is made of one.
        r"(?i)(?<=:)(?P<x>[0-9a-f]{1,4}:[0-9a-f]{0,2}ff:fe[0-9a-f]{2}:[0-9a-f]{1,4})\b",
    ),
    _kind(
        "identifiers",
        # The name of a wireless network tells the place.
        r"(?i)(?<![A-Za-z])e?ssid[\"']?[ ]?[:=][ ]?(?P<x>\"[^\"\n]*\"?|'[^'\n]*'?)",
        r"(?i)(?<![A-Za-z])e?ssid=(?P<x>[^\s\"',;]+)",
        r"(?i)(?<![A-Za-z])e?ssid:[ ](?P<x>[^\s\"',;][^\n\"',;]*)",
        rf"(?<![\w-])(?P<x>{_UUID})(?![\w-])",
        rf"(?i)\bluks-(?P<x>{_UUID})",
        r"(?<![\w])(?:PART)?(?:UUID|LABEL)=(?P<x>\"[^\"\n]*\"?|[^\s\"',;]+)",
        r"/disk/by-(?:id|uuid|label|partuuid|partlabel|diskseq)/(?P<x>[^\s\"',;)]+)",
        r"(?i)(?:machine|boot|invocation|product|system|host)[_.-]?(?:id|uuid)"
        r"[\"']?[\s:=]{1,4}[\"']?(?P<x>[0-9a-f]{32})\b",
        r"(?i)\b(?:wwn-|naa\.|eui\.|nvme\.|t10\.)(?P<x>(?:0x)?[0-9a-f]{8,}[\w.-]*)",
        r"(?i)\b(?:wwn|wwpn|wwnn|wwid|(?:port|node)_name|sas_addr(?:ess)?)[\"']?"
        r"[\s:=(]{1,4}(?P<x>(?:0x)?[0-9a-f]{16,32})\b",
    ),
    _kind(
        "serial numbers",
        r"(?i)(?:serial(?:[ _-]?(?:no|number|num|id))?|(?:asset|service)[ _-]?tag)"
        r"[\"']?\s{0,8}[:=#]\s{0,4}[\"']?(?P<x>[^\s\"',;]+)",
        r"(?<![\w/.-])S/?N[ ]?[:=#][ ]?(?P<x>[^\s\"',;]+)",
        r"(?i)\bserial[ _]?(?:number|no\.?)[ \t]{1,4}(?P<x>(?=[^\s,;]{0,60}\d)"
        r"[^\s\"',;:=]+)",
        # Of a modem and its card.
        r"(?i)\b(?:imei(?:sv)?|imsi|iccid|meid)[\"']?[ ]?[:=#]?[ ]?[\"']?"
        r"(?P<x>\d[\d-]{9,24}\d)\b",
        stays=r"(?i)serial\s*:\s*8250/16550$",
    ),
)
"""What identifies a machine, or opens it."""


def _is_foreign(text: str) -> bool:
    """Whether it is an address of a network, and not of every machine."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


_NUMBERS = Kind(
    "addresses",
    (
        re.compile(
            r"(?<![\w.])(?<![A-Za-z_+.]-)(?P<x>(?:\d{1,3}\.){3}\d{1,3})(?!\w|\.\d)"
        ),
        re.compile(
            rf"(?<![\w.]){_NO_GROUP}(?=[0-9a-fA-F]{{0,4}}:[0-9a-fA-F]{{0,4}}:)"
            r"(?P<x>[0-9a-fA-F:]{3,39})(?![\w:])"
        ),
    ),
    is_one=_is_foreign,
)

OF_PEOPLE = (
    _kind(
        "names",
        r"(?:/(?:home|Users|media|run/media)/|[A-Z]:\\Users\\)(?P<x>[^/\\\s\"':]+)",
        r"(?<![\w.+/:-])(?P<x>[\w.+-]+@[\w.-]*\w)",
        r"(?i)(?<!\w)(?:(?:user(?:name)?|logname|hostname)=|hostname:[ ])"
        r"(?P<x>[^\s\"',;&=]+)",
        r"\bip=(?:[^\s:]*:){4}(?P<x>[^\s:]+)",
        r"(?i)\bhost ?name(?: set to)?:? <?(?P<x>[\w.-]*\w)>",
    ),
    _NUMBERS,
)
"""Names of hosts and users, and addresses in a network."""


def _gone(_kind: Kind, _word: str) -> str:
    return GONE


def redact_text(
    text: str,
    tally: Redactions,
    *,
    kinds: Iterable[Kind] = OF_MACHINES,
    replace: Replace = _gone,
) -> str:
    """Return a text without what is of these kinds, and count that."""
    for kind in kinds:
        for pattern in kind.patterns:
            text = pattern.sub(_Put(kind, tally, replace), text)
    return text


@dataclass(frozen=True, slots=True)
class _Put:
    """What `re.sub` puts in the place of a match."""

    kind: Kind
    tally: Redactions
    replace: Replace

    def __call__(self, match: re.Match[str]) -> str:
        """Return the match with another text for its group `x`."""
        whole, word, at = match[0], match["x"], match.start()
        stays = self.kind.stays
        if (
            GONE in word
            or (stays is not None and stays.match(whole))
            or not self.kind.is_one(word)
        ):
            return whole
        new = self.replace(self.kind, word)
        if new != word:
            self.tally.count(self.kind.name, 1)
        begin, end = match.span("x")
        return f"{whole[: begin - at]}{new}{whole[end - at :]}"


_OF_ONE_VALUE = re.compile(
    r"/(?:[\w-]*serial(?:[_-]n(?:umber|o))?|product_uuid|machine-id|boot_id|wwid|uuid"
    r"|unique_id|[\w-]*asset_tag)$"
)
"""Files whose whole content is a serial number or an identifier."""


def redact_files(files: Mapping[str, bytes], tally: Redactions) -> Mapping[str, bytes]:
    """Redact every file that is text; what is binary stays, as do names of files."""
    kept: dict[str, bytes] = {}
    for path, content in files.items():
        if _OF_ONE_VALUE.search(path) and content.strip():
            kept[path] = f"{GONE}\n".encode()
            tally.count("identifiers", 1)
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            kept[path] = content
            continue
        kept[path] = redact_text(text, tally).encode()
    return kept
