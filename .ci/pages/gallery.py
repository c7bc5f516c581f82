"""The texts of the gallery as pages: story, source, results on all runtimes, timelines of searches."""

import re
from collections import defaultdict

import kdl
import matrix
import rustdoc
from layout import Page, chain, text
from rules import place
from tool import each


class Text:
    """A text of the gallery, with what the tool says of it."""

    def __init__(self, tool, listed, folder, ids):
        self.listed, self.file, self.chapter = listed, listed["file"], listed["chapter"]
        self.shows, self.tags = listed["shows"] or "", listed["tags"]
        self.name = self.file.rsplit("/", 1)[-1].removesuffix(".kdl")
        self.source = (rustdoc.ROOT / "fixtures" / self.file).read_text()
        self.path = place(self.file)
        self.cites = set(listed["clauses"]) | ids.cited(f"{self.source}\n{self.named_id()}")
        self.snapshots = tool.objects("matrix", self.file) if listed["snapshots"] else []
        self.walks = tool.run("compare", self.file) if listed["mixed_walks"] else ""
        self.timeline = None
        if listed["searches"]:
            self.timeline = self.path.replace(".html", ".timeline.html")
            self.draw(tool, folder / self.timeline)

    def draw(self, tool, page):
        """Writes a history as a page, with a way back."""
        page.parent.mkdir(parents=True, exist_ok=True)
        tool.run("timeline", self.file, "--html", page)
        head, rest = page.read_text().split("<body>\n", 1)
        page.write_text(f'{head}<body>\n<p><a href="{self.name}.html">The text of this history</a></p>\n{rest}')

    def named_id(self):
        """Returns the id that the name of the file begins with: E-6 for `e-06-…`, G17 for `g17-…`."""
        found = re.match(r"([cdegh])-?(\d+)-", self.name)
        if not found:
            return ""
        letter, number = found[1].upper(), int(found[2])
        forms = {"C": f"C-{number:03}", "E": f"E-{number}", "G": f"G{number:02}"}
        return forms.get(letter, f"{letter}-{number:02}")

    def comment(self):
        """Returns the comment at the beginning of the text."""
        lines = []
        for line in self.source.splitlines():
            if not line.startswith("//"):
                break
            lines.append(line.lstrip("/ "))
        return " ".join(lines)

    def has(self):
        """Returns the number of its calls and searches in words."""
        kinds = [("snapshots", "snapshot", "snapshots"), ("mixed_walks", "walk of the whole stack",
                 "walks of whole stacks"), ("searches", "search of histories", "searches of histories")]
        counts = [(self.listed[key], one, more) for key, one, more in kinds]
        return ", ".join(f"{count} {one if count == 1 else more}" for count, one, more in counts if count) or "none"


class Gallery:
    """The texts by chapter."""

    def __init__(self, tool, rules, runtimes, folder):
        self.ids, self.runtimes = rules.ids, runtimes
        listed = tool.objects("list")
        self.texts = each(lambda it: Text(tool, it, folder, self.ids), listed)
        self.timelines = sum(it.timeline is not None for it in self.texts)
        self.index = Page("gallery/index.html", "Gallery", "", "Gallery")
        self.chapters, by_id = {}, defaultdict(list)
        for it in self.texts:
            if it.chapter not in self.chapters:
                chapter = Page(f"gallery/{it.chapter}/index.html", it.chapter.capitalize(), "", "Gallery",
                               parents=[self.index])
                self.chapters[it.chapter] = (chapter, [])
            chapter, pages = self.chapters[it.chapter]
            page = Page(it.path, it.name, self.body(it), "Gallery", it.shows, parents=[self.index, chapter],
                        words=[self.file_words(it)], is_listed=False)
            pages.append((it, page))
            for id in it.cites:
                by_id[id].append(page)
        self.by_id = dict(by_id)

    @staticmethod
    def file_words(it):
        """Returns the words by which the search finds a text."""
        whys = [column["why"]["text"] for snapshot in it.snapshots for column in snapshot["columns"] if column["why"]]
        return " ".join([it.file, *it.tags, it.source, *whys])

    def naming(self, id):
        """Returns the pages of the texts that name a rule."""
        return self.by_id.get(id, [])

    def pages(self):
        """Returns the pages of the gallery, its chapters and its texts."""
        everything = []
        items = []
        for chapter, texts in self.chapters.values():
            count = "1 text" if len(texts) == 1 else f"{len(texts)} texts"
            items.append(f'<li><a href="@/{chapter.path}">{text(chapter.title)}</a>: {count}</li>')
            chapter.about = f"{chapter.title}: {count} of the gallery."
            chapter.body = f'<p>{count}, each with its results on all runtimes.</p><ul class="texts">' + "".join(
                f'<li><a href="@/{page.path}">{text(page.title)}</a><br>{text(it.shows)}</li>' for it, page in texts)
            chapter.body += "</ul>"
            pages = [page for _, page in texts]
            chain(pages)
            everything += [chapter, *pages]
        chain([chapter for chapter, _ in self.chapters.values()])
        self.index.about = f"{len(self.texts)} texts, by chapter."
        self.index.body = (
            f"<p>{len(self.texts)} texts that the tests run on all runtimes. A text is a program or a stack, "
            "the calls that are made there, and what is expected of each runtime. "
            '<a href="@/reference/text-format.html">The text format</a> explains the nodes.</p>'
            f'<ul class="texts">{"".join(items)}</ul>')
        return [self.index, *everything]

    def facts(self, it):
        """Returns what a text is about, in a list."""
        rows = [("File", f"<code>{text(it.file)}</code>"), ("Kind", f"{it.listed['kind']}, with {it.has()}")]
        if it.tags:
            tags = ", ".join(f'<a href="@/search.html?q={tag}">{tag}</a>' for tag in it.tags)
            rows.append(("Tags", tags))
        if it.cites:
            rows.append(("Rules", ", ".join(self.ids.link(id) for id in sorted(it.cites))))
        rows.append(("Run it", f"<code>clrsim run {text(it.file)}</code>"))
        items = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
        return f'<dl class="facts">{items}</dl>'

    def body(self, it):
        """Returns the page of a text."""
        parts = [f'<p class="lead">{self.ids.linked(text(it.shows))}</p>' if it.shows else ""]
        if comment := it.comment():
            parts.append(f"<p>{self.ids.linked(text(comment))}</p>")
        parts.append(self.facts(it))
        if it.timeline:
            name = it.timeline.rsplit("/", 1)[1]
            parts.append(
                f'<h2 id="timeline">Timeline</h2><p><a href="{name}">A history of this text, turn by turn</a>: '
                "the first one that fails; if none fails, the one in which nothing is chosen. "
                "The page shows each thread's stack, locks and waits at each moment.</p>")
        source = kdl.highlighted(it.source.rstrip("\n"), self.ids)
        parts.append(f'<h2 id="source">Source</h2><pre class="language-kdl"><code>{source}</code></pre>')
        if it.snapshots:
            parts.append('<h2 id="results">Results on the runtimes</h2>')
            parts += [matrix.section(snapshot, self.ids, self.runtimes) for snapshot in it.snapshots]
        if it.walks:
            # Its first lines are the name of the text and its story.
            walks = self.ids.linked(text(it.walks.split("\n\n", 1)[-1].rstrip("\n")))
            parts.append(
                '<h2 id="walks">Walks of whole stacks</h2><p>What kinds of profilers see of each stack; R is reported '
                'by the runtime, U found by unwinding (<a href="@/book/the-tool.html#compare-kinds-of-profilers">an '
                f'example</a>).</p><pre class="language-console"><code>{walks}</code></pre>')
        if not it.snapshots and not it.walks and not it.timeline:
            parts.append(
                f'<h2 id="results">Results</h2><p><code>clrsim run {text(it.file)}</code> compares what is found at '
                "its stops with what it expects.</p>")
        return "".join(parts)
