"""
Completions of bash, zsh and fish, from the command line as data.

They are scripts without calls of rtscope: a key that is pressed costs no Python.
"""

from collections.abc import Iterator

from commandline import DIRECTORIES, FILES, Param, Verb, groups, short, verbs

HEAD = (
    "Made by tools/docs/generate.py from src/rtscope/cli: edit that, then type "
    "`make docs`."
)


def scripts() -> dict[str, str]:
    """Return the text of each script by its file name."""
    made = {"rtscope.bash": _bash(), "_rtscope": _zsh(), "rtscope.fish": _fish()}
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}


def _first_words() -> dict[str, str]:
    """Return what may be typed first, with one line of help each."""
    alone = {v.words[0]: v.brief for v in verbs() if len(v.words) == 1}
    return {**alone, **groups()}


def _below(group: str) -> dict[str, str]:
    found = (v for v in verbs() if len(v.words) > 1 and v.words[0] == group)
    return {v.words[1]: v.brief for v in found}


def _said(one: Param) -> str:
    """Return what an option is for, without the values that are listed anyway."""
    return short(one.help).partition(": ")[0]


# --- bash ------------------------------------------------------------------------

_BASH = r"""
_rtscope() {
    local line=${COMP_LINE:0:COMP_POINT} cur prev before='' verb='' word values=''
    local kind='' many='' options='' found
    local -a words
    read -ra words <<< "$line"
    # Of the line, not COMP_WORDS: that is cut at each ':' and '='.
    [[ $line == *[[:space:]] ]] && words+=('')
    cur=${words[${#words[@]}-1]}
    prev=${words[${#words[@]}-2]}
    for word in "${words[@]:1:${#words[@]}-2}"; do
        [[ $word == -* || $verb == *' '* ]] && continue
        case "$verb" in
            '') verb=$word ;;
            GROUPS) verb="$verb $word" ;;
        esac
    done
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*}
        before="$prev="
        cur=${cur#*=}
    fi
    _rtscope_known "$verb" "$prev"
    if [[ -z $kind ]]; then
        if [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
            return
        fi
        _rtscope_known "$verb" ''
    fi
    if [[ $many && $cur == *,* ]]; then
        before="$before${cur%,*},"
        cur=${cur##*,}
    fi
    case "$kind" in
        values) mapfile -t found < <(compgen -W "$values" -- "$cur") ;;
        files) mapfile -t found < <(compgen -f -- "$cur") ;;
        directories) mapfile -t found < <(compgen -d -- "$cur") ;;
        *) return ;;
    esac
    [[ $kind != values && -z $before ]] && compopt -o filenames 2> /dev/null
    ((${#found[@]} == 1)) && [[ ${found[0]} == *: ]] && compopt -o nospace 2> /dev/null
    # bash replaces only what follows the last character at which it cuts words.
    [[ $COMP_WORDBREAKS == *=* ]] && before=${before##*=}
    found=("${found[@]/#/$before}")
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        found=("${found[@]#"${cur%"${cur##*:}"}"}")
    fi
    COMPREPLY=("${found[@]}")
}

complete -F _rtscope rtscope
"""


def _bash() -> Iterator[str]:
    yield f"# bash completion of rtscope. {HEAD}"
    yield ""
    yield "# Sets kind, values, many and options of a verb, after the word in front."
    yield "_rtscope_known() {"
    yield "    kind='' values='' many=''"
    yield '    case "$1" in'
    tops = [("''", _first_words()), *((f"'{g}'", _below(g)) for g in groups())]
    for pattern, words in tops:
        version = "" if words is not tops[0][1] else " --version"
        yield f"        {pattern}) options='--help -h{version}'"
        yield f"            [[ $2 == '' ]] && kind=values values='{' '.join(words)}'"
        yield "            ;;"
    for verb in verbs():
        names = " ".join(name for one in verb.options for name in one.names)
        yield f"        '{verb.name}') options='{names}'"
        yield '            case "$2" in'
        for one in verb.options:
            if not one.flag:
                names = "|".join(one.names)
                yield f"                {names}) {_bash_kind(one)} ;;"
        if verb.arguments:
            kind = _bash_kind(verb.arguments[-1])
            yield f"                '') {kind} ;;"
        yield "            esac"
        yield "            ;;"
    yield "    esac"
    yield "}"
    yield _BASH.replace("GROUPS", "|".join(groups())).rstrip()


def _bash_kind(one: Param) -> str:
    if one.values:
        comma = " many=yes" * (one.many and bool(one.names))
        return f"kind=values values='{' '.join(one.values)}'{comma}"
    return f"kind={one.places or 'none'}"


# --- zsh -------------------------------------------------------------------------


def _zsh() -> Iterator[str]:
    yield "#compdef rtscope"
    yield f"# zsh completion of rtscope. {HEAD}"
    yield ""
    yield "_rtscope() {"
    yield "    local curcontext=$curcontext state line"
    yield "    typeset -A opt_args"
    yield "    _arguments -C '(-h --help)'{-h,--help}'[Show this help]' \\"
    yield "        '--version[Version of rtscope]' '1: :->verb' '*:: :->rest'"
    yield '    case "$state" in'
    yield "        verb)"
    yield from _zsh_menu(_first_words(), "command")
    yield "            ;;"
    yield "        rest)"
    yield '            case "$words[1]" in'
    for group in groups():
        yield f"                {group}) _rtscope_{group} ;;"
    for verb in verbs():
        if len(verb.words) == 1:
            yield from _zsh_verb(verb)
    yield "            esac"
    yield "            ;;"
    yield "    esac"
    yield "}"
    for group in groups():
        yield from _zsh_group(group)
    yield ""
    yield "# Read by compinit it is a function's body; by source, a definition."
    yield 'if [ "$funcstack[1]" = "_rtscope" ]; then'
    yield '    _rtscope "$@"'
    yield "else"
    yield "    compdef _rtscope rtscope"
    yield "fi"


def _zsh_group(group: str) -> Iterator[str]:
    yield ""
    yield f"_rtscope_{group}() {{"
    yield "    local curcontext=$curcontext state line"
    yield "    typeset -A opt_args"
    yield "    _arguments -C '(-h --help)'{-h,--help}'[Show this help]' \\"
    yield "        '1: :->verb' '*:: :->rest'"
    yield '    case "$state" in'
    yield "        verb)"
    yield from _zsh_menu(_below(group), "command")
    yield "            ;;"
    yield "        rest)"
    yield '            case "$words[1]" in'
    for verb in verbs():
        if verb.words[0] == group and len(verb.words) > 1:
            yield from _zsh_verb(verb)
    yield "            esac"
    yield "            ;;"
    yield "    esac"
    yield "}"


def _zsh_menu(words: dict[str, str], tag: str) -> Iterator[str]:
    yield "            local -a found=("
    for word, text in words.items():
        yield f"                {_quoted(f'{word}:{short(text)}')}"
    yield "            )"
    yield f"            _describe {tag} found"


def _zsh_verb(verb: Verb) -> Iterator[str]:
    yield f"                {verb.words[-1]}) _arguments -s \\"
    rows = [_zsh_option(one) for one in verb.options]
    for one in verb.arguments:
        stars = "*:" if one.many else ":"
        rows.append(_quoted(f"{stars}{one.name}:{_zsh_action(one)}"))
    for row in rows[:-1]:
        yield f"                    {row} \\"
    yield f"                    {rows[-1]} ;;"


def _zsh_option(one: Param) -> str:
    said = _said(one)
    for char in "[]\\:":
        said = said.replace(char, f"\\{char}")
    value = "" if one.flag else f":{one.name}:{_zsh_action(one)}"
    if len(one.names) == 1:
        return _quoted(f"{one.names[0]}[{said}]{value}")
    alone, names = " ".join(one.names), ",".join(one.names)
    return f"'({alone})'{{{names}}}{_quoted(f'[{said}]{value}')}"


def _zsh_action(one: Param) -> str:
    values = " ".join(word.replace(":", "\\:") for word in one.values)
    if one.values and one.many and one.names:
        return f"_sequence compadd - {values}"
    if one.values:
        return f"({values})"
    return {FILES: "_files", DIRECTORIES: "_files -/"}.get(one.places, " ")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish ------------------------------------------------------------------------

_FISH = """
# Whether these words, and only options besides them, stand before the cursor.
function __rtscope_at
    set -l words (commandline -opc)[2..]
    set -l typed
    for word in $words
        string match -q -- '-*' $word; or set -a typed $word
    end
    test (count $typed) -ge (count $argv); or return 1
    test (count $argv) -eq 0; and test (count $typed) -gt 0; and return 1
    for i in (seq (count $argv))
        test "$typed[$i]" = "$argv[$i]"; or return 1
    end
end

function __rtscope_just
    __rtscope_at $argv; or return 1
    set -l typed (string match -v -- '-*' (commandline -opc)[2..])
    test (count $typed) -eq (count $argv)
end

complete -c rtscope -f
complete -c rtscope -s h -l help -d 'Show this help'
complete -c rtscope -n __rtscope_just -l version -d 'Version of rtscope'
"""


def _fish() -> Iterator[str]:
    yield f"# fish completion of rtscope. {HEAD}"
    yield _FISH.rstrip()
    for word, text in _first_words().items():
        yield _fish_word("__rtscope_just", word, text)
    for group in groups():
        for word, text in _below(group).items():
            yield _fish_word(f"__rtscope_just {group}", word, text)
    for verb in verbs():
        at = f"complete -c rtscope -n '__rtscope_at {verb.name}'"
        for one in verb.options:
            if one.name == "HELP":
                continue
            said = _quoted(_said(one))
            yield f"{at} {_fish_names(one)} -d {said}{_fish_action(one)}"
        for one in verb.arguments[-1:]:
            yield f"{at}{_fish_action(one)}"


def _fish_word(at: str, word: str, text: str) -> str:
    return f"complete -c rtscope -n '{at}' -a {word} -d {_quoted(short(text))}"


def _fish_names(one: Param) -> str:
    words = (
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in one.names
    )
    return " ".join(words)


def _fish_action(one: Param) -> str:
    if one.flag:
        return ""
    if one.values and one.many and one.names:
        return f" -xa '(__fish_append , {' '.join(one.values)})'"
    if one.values:
        exclusive = "-x" if one.names else ""
        return f" {exclusive}{'a' if exclusive else '-a'} '{' '.join(one.values)}'"
    if one.places == DIRECTORIES:
        return " -xa '(__fish_complete_directories)'"
    if one.places == FILES:
        return " -rF" if one.names else " -F"
    return " -x" if one.names else ""
