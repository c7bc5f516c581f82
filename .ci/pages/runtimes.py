"""The runtimes, their answers, and what differs between them."""

from layout import Page, chain, text
from markup import Section
from rules import inline

KNOWN = ["observed", "read", "documented", "assumed"]


class Runtimes:
    """The runtimes that the tool simulates."""

    def __init__(self, tool):
        self.all = tool.objects("runtimes")
        self.answers = {it["name"]: {answer["question"]: answer for answer in it["answers"]} for it in self.all}
        self.questions = list(self.answers[self.all[0]["name"]])
        self.meanings = {}
        # The tool says what a question means where two runtimes differ in it.
        names = [it["name"] for it in self.all]
        for one, other in [*zip(names, names[1:]), *((names[0], name) for name in names[1:])]:
            for difference in tool.objects("runtimes", "--diff", one, other):
                self.meanings[difference["question"]] = difference["meaning"]

    def families(self):
        """Returns the sets of runtimes that have a name, the largest first."""
        sets = {"all runtimes": {it["name"] for it in self.all}}
        for it in self.all:
            system, product = it["os"], it["product"]
            for name in [system, product, f"{product} on {system}", it["name"].removesuffix(f"-{system}")]:
                sets.setdefault(name, set()).add(it["name"])
        return sets

    def named(self, names):
        """Returns a set of runtimes in few words: by families where these are all in it."""
        left, words = set(names), []
        for family, members in sorted(self.families().items(), key=lambda it: -len(it[1])):
            if len(members) > 1 and members <= left:
                words.append(family)
                left -= members
        return ", ".join([*words, *(it["name"] for it in self.all if it["name"] in left)])

    def differences(self, one, other):
        """Returns the questions that two runtimes answer differently."""
        return [it for it in self.questions if self.answers[one][it]["answer"] != self.answers[other][it]["answer"]]

    def pages(self, ids):
        """Returns the page of all runtimes, and that of each."""
        index = self.index(ids)
        pages = [index, *(self.page(it, index, ids) for it in self.all)]
        chain(pages)
        return pages

    def index(self, ids):
        """Returns the page of all runtimes, with the questions that they answer differently."""
        about = "The simulated runtimes, how their answers are known, and what differs between them."
        rows = []
        for it in self.all:
            counts = [sum(answer["known"] == known for answer in it["answers"]) for known in KNOWN]
            cells = "".join(f"<td>{count}</td>" for count in counts)
            name = f'<a href="@/runtimes/{it["name"]}.html">{it["name"]}</a>'
            rows.append(f'<tr><th scope="row">{name}</th><td>{text(it["title"])}</td>{cells}</tr>')
        body = [f"<p>{about} Each runtime answers {len(self.questions)} questions; the columns count how the answers "
                "are known, strongest first. The page of a runtime compares it with each other one.</p>"
                f"{table(['Runtime', 'What it is', *KNOWN], rows)}"
                '<h2 id="differences">What differs</h2>']
        sections = [Section("", "Runtimes", 1), Section("differences", "What differs", 2)]
        for question in self.questions:
            groups = {}
            for it in self.all:
                groups.setdefault(self.answers[it["name"]][question]["answer"], []).append(it["name"])
            if len(groups) > 1:
                items = "".join(f"<li><strong>{text(answer)}</strong>: {self.named(names)}</li>"
                                for answer, names in groups.items())
                meaning = self.meanings.get(question, "")
                heading = f'<h3 id="{question}"><code>{question}</code></h3>'
                body.append(f"{heading}<p>{inline(meaning, ids)}</p><ul>{items}</ul>")
                sections.append(Section(question, question, 3, [meaning, question.replace("_", " "), *groups]))
        return Page("runtimes/index.html", "Runtimes", "\n".join(body), "Runtimes", about, sections=sections)

    def page(self, runtime, index, ids):
        """Returns the page of a runtime."""
        name = runtime["name"]
        body = [f'<p class="lead">{text(runtime["title"])}</p><h2 id="differences">Differences</h2>']
        for other in self.all:
            if other is not runtime:
                body.append(self.comparison(name, other["name"], ids))
        body.append('<h2 id="answers">All answers</h2>')
        rows = []
        for question, answer in self.answers[name].items():
            linked = self.question(question)
            source = inline(answer["source"] or "", ids)
            rows.append(f'<tr><th scope="row">{linked}</th><td>{text(answer["answer"])}</td>'
                        f'<td>{answer["known"]}</td><td class="prose">{source}</td></tr>')
        body.append(table(["Question", "Answer", "Known", "Source"], rows))
        return Page(f"runtimes/{name}.html", name, "\n".join(body), "Runtimes", runtime["title"], parents=[index],
                    sections=[Section("", name, 1, [answer["source"] or "" for answer in runtime["answers"]])])

    def question(self, question):
        """Returns the name of a question as HTML: a link, if runtimes answer it differently."""
        name = question.replace("_", "_<wbr>")
        return f'<a href="@/runtimes/index.html#{question}">{name}</a>' if question in self.meanings else name

    def comparison(self, one, other, ids):
        """Returns what differs between two runtimes, closed."""
        questions = self.differences(one, other)
        if not questions:
            return f"<p>From {other}: nothing.</p>"
        rows = []
        for question in questions:
            answers = "".join(f"<td>{text(self.answers[it][question]['answer'])}</td>" for it in [one, other])
            meaning = inline(self.meanings.get(question, ""), ids)
            name = self.question(question)
            rows.append(f'<tr><th scope="row">{name}</th>{answers}<td class="prose">{meaning}</td></tr>')
        count = f"{len(questions)} of {len(self.questions)} answers"
        made = table(["Question", one, other, "Meaning"], rows)
        return f"<details><summary>From {other}: {count}</summary>{made}</details>"


def table(heads, rows):
    """Returns a table that scrolls."""
    heads = "".join(f'<th scope="col">{text(it)}</th>' for it in heads)
    return (f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>'
            f'<tbody>{"".join(rows)}</tbody></table></div>')
