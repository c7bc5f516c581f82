"""Mutants of cargo-mutants as switches: all are compiled together, and the variable MUTANT chooses one.

`cargo mutants --list --json` says what each mutant replaces. Here an operator becomes a choice between
operators, a function returns early, an arm gets a guard. Operands stay where they are and are evaluated
once, so mutants nest.
"""

import re

from mutants import blanked, closing

# The module that chooses. It is asked in constants, too, where no mutant is on. MUTANT_SEEN is a file that
# gets the number of each mutant that is reached; then none is on.
SWITCH = """
/// Chooses a mutant.
pub mod mutant {
    extern crate std;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    use std::io::Write;

    const UNKNOWN: u32 = u32::MAX;
    const NOTING: u32 = u32::MAX - 1;
    static CHOSEN: AtomicU32 = AtomicU32::new(UNKNOWN);
    static SEEN: [AtomicBool; 65536] = [const { AtomicBool::new(false) }; 65536];
    static FILE: std::sync::OnceLock<std::fs::File> = std::sync::OnceLock::new();

    /// Returns true if the mutant is chosen.
    #[inline]
    pub const fn on(number: u32) -> bool {
        core::intrinsics::const_eval_select((number,), never, chosen)
    }

    const fn never(_: u32) -> bool {
        false
    }

    #[inline]
    fn chosen(number: u32) -> bool {
        match CHOSEN.load(Relaxed) {
            NOTING => note(number),
            UNKNOWN => read(number),
            chosen => chosen == number,
        }
    }

    #[cold]
    fn read(number: u32) -> bool {
        let chosen = std::env::var("MUTANT").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
        if std::env::var_os("MUTANT_SEEN").is_some() {
            CHOSEN.store(NOTING, Relaxed);
            return note(number);
        }
        CHOSEN.store(chosen, Relaxed);
        chosen == number
    }

    #[cold]
    fn note(number: u32) -> bool {
        if !SEEN[number as usize].load(Relaxed) && !SEEN[number as usize].swap(true, Relaxed) {
            let mut file = FILE.get_or_init(|| {
                let path = std::env::var_os("MUTANT_SEEN").unwrap();
                std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap()
            });
            let mut line = [0; 8];
            let mut rest = &mut line[..];
            writeln!(rest, "{number}").unwrap();
            let free = rest.len();
            file.write_all(&line[..8 - free]).unwrap();
        }
        false
    }
}
"""
PRECEDENCE = {
    **dict.fromkeys(["*", "/", "%"], 10), **dict.fromkeys(["+", "-"], 9),
    **dict.fromkeys(["<<", ">>"], 8), "&": 7, "^": 6, "|": 5,
    **dict.fromkeys(["==", "!=", "<", ">", "<=", ">="], 4), "&&": 3, "||": 2}
ASSIGNMENT = re.compile(r"(?<=\s)(?:[-+*/%&|^]|<<|>>)?=(?=\s)")
# rustfmt puts blanks around binary operators, and around nothing else that looks like one.
BINARY = re.compile(r"(?<=\s)(<<|>>|[=!<>]=|&&|\|\||[-+*/%&^|<>])(?=\s)")
BEFORE = re.compile(r"\b(return|break|if|while|match|in|else|let|move|yield)$")


class NotExpressed(Exception):
    """A mutant that no switch can express."""


def opening(code, at):
    """Returns the offset of the bracket that the one at an offset closes."""
    depth = 0
    for offset in range(at, -1, -1):
        depth += (code[offset] in "})]") - (code[offset] in "{([")
        if depth == 0:
            return offset
    raise NotExpressed("bracket")


def operator_at(code, at):
    """Returns the binary operator that begins at an offset."""
    found = BINARY.match(code, at)
    return found[1] if found else None


def left_operand(code, at, precedence):
    """Returns the start of the left operand of an operator at an offset."""
    end = at
    start = at
    while start > 0:
        char = code[start - 1]
        if char in ")]":
            if char == "]" and re.match(r"\s+[\w({\[&*!-]", code[start:]) and operator_ahead(code, start) is None:
                break
            start = opening(code, start - 1)
            continue
        if char == "}":
            rest = code[start:end].strip()
            if not rest or rest.startswith((".", "?")):
                raise NotExpressed("block as an operand")
            break
        if char in "([{,;":
            break
        if char == ":" and code[start - 2] != ":" and code[start:start + 1] != ":":
            break
        if code.startswith("..", start - 2) or code.startswith("=>", start - 2):
            break
        if char == "=" and code[start - 2] == "." and code[start - 3] == ".":
            break
        if char == "|" and (not re.search(r"\s\|{1,2}$", code[:start][-3:]) or is_closure(code, start - 1)):
            break
        if code[start:start + 1].isspace() and BEFORE.search(code[max(0, start - 8):start]):
            break
        if code[start:start + 1].isspace():
            token = re.search(r"\s(\S{1,3})$", code[max(0, start - 5):start])
            if token and ASSIGNMENT.match(code, start - len(token[1])):
                break
            operator = token and operator_at(code, start - len(token[1]))
            if operator == token[1] if token else False:
                if PRECEDENCE[operator] < precedence:
                    break
        start -= 1
    while code[start].isspace():
        start += 1
    if start >= at:
        raise NotExpressed("no left operand")
    return start


def operator_ahead(code, at):
    """Returns the binary operator after white space."""
    found = re.match(r"\s+", code[at:])
    return operator_at(code, at + found.end()) if found else None


def is_closure(code, at):
    """Returns true if a `|` before an offset begins the parameters of a closure."""
    before = code[:at].rstrip("|").rstrip()
    return before.endswith(("(", ",", "=", "{", "=>", "return", "move"))


def right_operand(code, at, precedence):
    """Returns the end of the right operand that begins at an offset."""
    start = at
    while code[start].isspace():
        start += 1
    if re.match(r"(if|match|unsafe|loop|while|\|)\b", code[start:]):
        raise NotExpressed("block as an operand")
    end = start
    while end < len(code):
        char = code[end]
        is_struct = re.search(r"\b[A-Z]\w* $", code[start:end]) and re.match(r"\{\s*(\w+:[^:]|\.\.)", code[end:])
        if char in "([" or is_struct:
            end = closing(code, end) + 1
            continue
        if char in ")]},;{" or code.startswith(("=>", ".."), end):
            break
        if char.isspace() and re.match(r"\s+else\b", code[end:]):
            break
        if ASSIGNMENT.match(code, end):
            break
        operator = operator_at(code, end)
        if operator:
            if PRECEDENCE[operator] <= precedence:
                break
            end += len(operator)
            continue
        end += 1
    while code[end - 1].isspace():
        end -= 1
    if end <= start:
        raise NotExpressed("no right operand")
    return end


def unary_operand(code, at):
    """Returns the end of the operand of a unary operator."""
    end = at
    while code[end] in "!-*&":
        end += 1
    if not re.match(r"[\w(]", code[end:]) or re.match(r"(if|match|unsafe|loop|mut)\b", code[end:]):
        raise NotExpressed("operand")
    while True:
        found = re.match(r"\w+!?|::<|::|\?|\s*\.(?!\.)", code[end:])
        if found and found[0] == "::<":
            end += 3
            depth = 1
            while depth:
                depth += (code[end] == "<") - (code[end] == ">")
                end += 1
        elif found and not (found[0][0].isalnum() and code[end - 1] in ")]?"):
            end += found.end()
        elif code[end] in "([":
            end = closing(code, end) + 1
        else:
            return end


def ternary(choices, otherwise):
    """Returns an expression that chooses by mutant."""
    text = ""
    for number, value in choices:
        text += f"if ON({number}) {{ {value} }} else "
    return text + f"{{ {otherwise} }}"


class Source:
    """The source text of a file, and what is put into it."""

    def __init__(self, text):
        self.text = text
        self.code = blanked(text, "x")
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def offset(self, place):
        """Returns the offset of a line and a column."""
        return self.lines[place["line"] - 1] + place["column"] - 1

    def brackets_of(self, mutant, number):
        """Returns what a mutant puts around parts: start, what is put there, end, what is put there; and
        what replaces a part inside."""
        start, end = self.offset(mutant["span"]["start"]), self.offset(mutant["span"]["end"])
        genre, instead = mutant["genre"], mutant["replacement"]
        if not mutant["function"]:
            raise NotExpressed("constant")
        if genre == "FnValue":
            if "impl " in mutant["function"]["return_type"]:
                raise NotExpressed("impl type")
            return start, end, ("value", number, instead)
        if genre == "MatchArmGuard":
            if re.search(r"\blet\b", self.code[start:end]):
                raise NotExpressed("let in a guard")
            return start, end, ("guard", number, instead)
        if genre == "MatchArm":
            return self.arm(start, number)
        if genre == "UnaryOperator":
            operand = end
            while self.code[operand].isspace():
                operand += 1
            return start, unary_operand(self.code, operand), ("unary", number, start, operand)
        if genre == "BinaryOperator":
            operator = self.text[start:end]
            if operator in PRECEDENCE:
                precedence = PRECEDENCE[operator]
            elif operator.endswith("="):
                precedence = 1
            else:
                raise NotExpressed(operator)
            left = left_operand(self.code, start, precedence)
            right = right_operand(self.code, end, precedence)
            if re.search(r"\blet\b", self.code[left:start] + self.code[end:right]) or operator in ("&&", "||") and \
                    re.search(r"(\bif|\bwhile|&&)\s+let\b((?!\blet\b|&&)[^;])*=\s*$", self.code[:left][-400:]):
                raise NotExpressed("let in a condition")
            return left, right, ("binary", number, start, end, left, instead)
        if genre == "StructField":
            return self.field(start, end, number)
        raise NotExpressed(genre)

    def field(self, start, end, number):
        """Returns the brackets of a field that is taken from the expression behind `..`."""
        name = re.match(r"\w+", self.code[start:])[0]
        at = end
        while self.code[at] != "}" and not self.code.startswith("..", at):
            at = closing(self.code, at) + 1 if self.code[at] in "([{" else at + 1
        last = at
        while self.code[last] != "}":
            last = closing(self.code, last) + 1 if self.code[last] in "([{" else last + 1
        base = f"({self.text[at + 2:last].strip().rstrip(',')}).{name}"
        end = start + len(self.code[start:end].rstrip().rstrip(",").rstrip())
        value = re.match(r"\s*:\s*", self.code[start + len(name):end])
        if not value:
            return end, end, ("short field", number, name, base)
        return start + len(name) + value.end(), end, ("field", number, name, base)

    def arm(self, start, number):
        """Returns the brackets of an arm that is left out."""
        at = start
        while not self.code.startswith("=>", at):
            at = closing(self.code, at) + 1 if self.code[at] in "([{" else at + 1
        guard = re.search(r"\sif\s", self.code[start:at])
        if guard:
            first, last = start + guard.end(), start + len(self.code[start:at].rstrip())
            if re.search(r"\blet\b", self.code[first:last]):
                raise NotExpressed("let in a guard")
            return first, last, ("arm with guard", number)
        return at, at, ("arm", number)

    def with_switches(self, mutants, path):
        """Returns the text with all these mutants, by number; `path` is that of the function `on`."""
        parts = {}
        for number, mutant in mutants.items():
            start, end, (kind, *rest) = self.brackets_of(mutant, number)
            key = (start, end, "guard" if "guard" in kind else kind, *rest[1:3] * (kind in ("binary", "unary")))
            parts.setdefault(key, []).append((kind, *rest))
        points = []
        for (start, end, kind, *_), group in parts.items():
            before, after, inside = brackets(kind, group, self.text)
            # What begins at one place begins with the longest part, and ends with the shortest. A guard or a
            # field is around the operator that it consists of.
            is_inner = kind in ("binary", "unary")
            if kind == "value":
                points.append((start, 1, -len(self.text), False, before, start))
            elif start == end:
                points.append((start, 1, 0, False, before, start))
            else:
                points.append((start, 1, -end, is_inner, before, start))
                points.append((end, 0, -start, not is_inner, after, end))
                points += [(put, 2, 0, False, what, until) for put, (until, what) in inside.items()]
        text, at = "", 0
        for put, _, _, _, what, until in sorted(points):
            text += self.text[at:put] + what
            at = until
        return (text + self.text[at:]).replace("ON(", f"{path}(") if points else self.text


def brackets(kind, group, text):
    """Returns what is put before and after a part, and what replaces pieces of it: end and text by offset."""
    if kind == "value":
        return "".join(f"if ON({number}) {{ return {value}; }} " for _, number, value in group), "", {}
    if kind == "arm":
        return "".join(f"if !ON({number}) " for _, number in group), "", {}
    if "field" in kind:
        [(_, number, name, base)] = group
        before = f"if ON({number}) {{ {base} }} else {{ "
        return (f": {before}{name} }}", "", {}) if kind == "short field" else (before, " }", {})
    if kind == "guard":
        before, after = "", ""
        for each, number, *value in group:
            if each == "arm with guard":
                before, after = before + f"!ON({number}) && (", after + ")"
            elif value == ["true"]:
                before, after = before + f"ON({number}) || (", after + ")"
            else:
                before, after = before + f"!ON({number}) && (", after + ")"
        return before, after, {}
    if kind == "unary":
        [(_, number, start, operand)] = group
        operator = text[start:operand].strip()
        value = ternary([(number, "it")], f"{operator}it")
        return "(match (", f") {{ it => {value} }})", {start: (operand, "")}
    start, end, left = group[0][2:5]
    operator = text[start:end]
    choices = [(number, instead) for _, number, _, _, _, instead in group]
    if operator in ("&&", "||"):
        [(number, instead)] = choices
        if instead not in ("&&", "||"):
            raise NotExpressed(instead)
        is_on = f"ON({number})" if operator == "&&" else f"!ON({number})"
        return "(if (", ") })", {start: (end, f") == {is_on} {{ {is_on} }} else {{ (")}
    if PRECEDENCE.get(operator) == 4:
        value = ternary([(number, f"*left {it} *right") for number, it in choices], f"*left {operator} *right")
        return "(match (&(", f")) {{ (left, right) => {value} }})", {start: (end, "), &(")}
    if operator in PRECEDENCE:
        value = ternary([(number, f"left {it} right") for number, it in choices], f"left {operator} right")
        return "(match ((", f")) {{ (left, right) => {value} }})", {start: (end, "), (")}
    # The place is read, then written: a borrow of it could get into the way of the right operand.
    value = ternary([(number, f"left {it[:-1]} right") for number, it in choices], f"left {operator[:-1]} right")
    return "", f")) {{ (left, right) => {value} }}", {start: (end, f"= match (({text[left:start].strip()}), (")}
