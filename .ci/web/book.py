"""The chapters of the book: their order, how long each takes to read, and the pages of long ones."""

import re

# Words that are read in a minute, those of code and tables among them.
PACE = 200
# Words of a page. A chapter that has more has a page for each of its sections.
LONG = 1500


def groups(listed):
    """Returns the lists of the book's front page (`mod.rs`): headings, and the modules below each."""
    found = {}
    for line in listed.splitlines():
        if line.startswith("//! # "):
            found[line.removeprefix("//! # ")] = modules = []
        elif item := re.match(r"//! (?:\d+\.|\*) \[.*\]\((\w+)\)", line):
            modules.append(item[1])
    return found


def minutes(text):
    """Returns how long a text takes to read: `1 minute`, `6 minutes`."""
    count = max(1, round(len(text.split()) / PACE))
    return f"{count} minute{'s' * (count > 1)}"


def headings(text):
    """Returns the headings of a text outside its code: where each begins, its level, its title."""
    found, fence, at = [], None, 0
    for line in text.splitlines(keepends=True):
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and fence in (None, mark[1]):
            fence = None if fence else mark[1]
        elif not fence and (heading := re.match(r"(#+) (.*)", line)):
            found.append((at, len(heading[1]), heading[2].strip()))
        at += len(line)
    return found


def slug(title):
    """Returns the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def sections(text):
    """Returns what a chapter says before its sections, and the sections: title, text with promoted headings, anchors of the
    headings inside."""
    listed = headings(text)
    starts = [at for at, level, _ in listed[1:] if level <= 2]
    made = []
    for begin, end in zip(starts, starts[1:] + [len(text)]):
        inside = [it for it in listed if begin <= it[0] < end]
        part, up = text[begin:end], inside[0][1] - 1
        for at, _, _ in reversed(inside):
            part = part[:at - begin] + part[at - begin + up:]
        made.append((inside[0][2], part, [slug(title) for _, _, title in inside[1:]]))
    return text[:starts[0]] if starts else text, made
