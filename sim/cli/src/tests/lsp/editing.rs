//! Corrections, meanings, symbols and names, as an editor asks for them.

use super::*;

/// A program with a name of each kind that is used.
const PROGRAM: &str = "\
function \"App.Main\" kind=\"jit\" {
    body { work 40 }
}
thread \"ui\" start=\"App.Main\"
profiler {
    lock \"mine\"
    thread \"sampler\" {
        lock \"mine\" { suspend \"ui\" { snapshot \"ui\" } }
    }
}
";

/// Opens a text in an editor that knows actions with changes.
fn open(text: &str) -> Editor {
    let literals = json!({ "codeActionKind": { "valueSet": ["quickfix"] } });
    let action = json!({ "codeActionLiteralSupport": literals });
    Editor::open_with(text, &json!({ "textDocument": { "codeAction": action } }))
}

/// Returns the parameters of a request about a part of a text.
fn at(text: &str, part: &str) -> Value {
    let offset = text.find(part).unwrap();
    let line = text[..offset].matches('\n').count();
    let column = offset - text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let position = json!({ "line": line, "character": column + 1 });
    json!({ "textDocument": { "uri": URI }, "position": position })
}

/// Returns a text with the edits of an editor, which are in one line each.
fn edited(text: &str, edits: &Value) -> String {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let mut edits = edits.as_array().unwrap().clone();
    let place = |edit: &Value, end: &str| {
        let place = &edit["range"][end];
        (place["line"].as_u64().unwrap() as usize, place["character"].as_u64().unwrap() as usize)
    };
    edits.sort_by_key(|edit| std::cmp::Reverse(place(edit, "start")));
    for edit in &edits {
        let ((line, start), (end_line, end)) = (place(edit, "start"), place(edit, "end"));
        assert_eq!(line, end_line);
        lines[line].replace_range(start..end, edit["newText"].as_str().unwrap());
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_problem_is_corrected_by_its_action() {
    let wrong = PROGRAM.replace("start=\"App.Main\"", "start=\"App.Mian\"");
    let mut editor = open(&wrong);
    let place = at(&wrong, "App.Mian");
    let range = json!({ "start": place["position"], "end": place["position"] });
    let ask = |only: Value| json!({ "textDocument": { "uri": URI }, "range": range, "context": { "diagnostics": [], "only": only } });
    let actions = editor.ask("textDocument/codeAction", ask(Value::Null));
    assert_eq!(actions.as_array().unwrap().len(), 1, "{actions}");
    let action = &actions[0];
    assert_eq!((&action["kind"], &action["isPreferred"]), (&json!("quickfix"), &json!(true)));
    assert_eq!(action["title"], "change to `App.Main`");
    assert_eq!(action["diagnostics"][0]["code"], "unknown-function");
    assert_eq!(edited(&wrong, &action["edit"]["changes"][URI]), PROGRAM);
    assert_eq!(editor.ask("textDocument/codeAction", ask(json!(["refactor"]))), json!([]));
    let elsewhere = json!({ "textDocument": { "uri": URI }, "context": { "diagnostics": [] },
        "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } } });
    assert_eq!(editor.ask("textDocument/codeAction", elsewhere), json!([]));
    editor.close();
    // An editor that knows commands alone gets no changes.
    let mut editor = Editor::open(&wrong);
    assert_eq!(editor.ask("textDocument/codeAction", ask(Value::Null)), json!([]));
    editor.close();
}

#[test]
fn hover_says_what_nodes_properties_and_names_mean() {
    let mut editor = open(PROGRAM);
    let mut shown = |part: &str| {
        let hover = editor.ask("textDocument/hover", at(PROGRAM, part));
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let node = shown("suspend");
    assert!(node.starts_with("**suspend** in action\n\n"), "{node}");
    assert!(node.contains("```kdl\nsuspend ") && node.ends_with("\n```"), "{node}");
    assert!(node.split("\n\n").count() >= 4 && !node.contains("[`"), "{node}");
    let property = shown("kind=");
    assert!(property.starts_with("**kind=** of `function`\n\njit, ready-to-run"), "{property}");
    assert_eq!(shown("\"mine\""), "lock `mine`: defined in line 6, used once");
    assert_eq!(shown("\"App.Main\""), "function `App.Main`: defined in line 1, used once");
    editor.close();
}

#[test]
fn a_text_has_symbols() {
    let mut editor = open(PROGRAM);
    let document = json!({ "textDocument": { "uri": URI } });
    let symbols = editor.ask("textDocument/documentSymbol", document.clone());
    let name = |symbol: &Value| symbol["name"].as_str().unwrap().to_owned();
    let names = |symbols: &Value| symbols.as_array().unwrap().iter().map(name).collect::<Vec<_>>();
    assert_eq!(names(&symbols), ["App.Main", "ui", "profiler"]);
    assert_eq!(symbols[0]["detail"], "function");
    let inside = &symbols[2]["children"];
    assert_eq!(names(inside), ["mine", "sampler"]);
    assert_eq!(inside[1]["range"]["end"], json!({ "line": 8, "character": 5 }));
    editor.change("function {");
    assert_eq!(editor.ask("textDocument/documentSymbol", document), json!([]));
    editor.close();
}

#[test]
fn names_are_found_and_changed() {
    let mut editor = open(PROGRAM);
    let used = at(PROGRAM, "\"ui\" { snapshot");
    let definition = editor.ask("textDocument/definition", used.clone());
    assert_eq!(definition["range"]["start"], json!({ "line": 3, "character": 7 }));
    let mut all = used.clone();
    all["context"] = json!({ "includeDeclaration": true });
    assert_eq!(editor.ask("textDocument/references", all).as_array().unwrap().len(), 3);
    let prepared = editor.ask("textDocument/prepareRename", used.clone());
    assert_eq!(prepared["placeholder"], "ui");
    assert_eq!(editor.ask("textDocument/prepareRename", at(PROGRAM, "work")), Value::Null);
    let mut rename = used.clone();
    rename["newName"] = "main thread".into();
    let edit = editor.ask("textDocument/rename", rename.clone());
    let renamed = edited(PROGRAM, &edit["changes"][URI]);
    assert_eq!(renamed, PROGRAM.replace("\"ui\"", "\"main thread\""));
    assert_eq!(editor.change(&renamed), json!([]));
    rename["newName"] = "own".into();
    editor.change(PROGRAM);
    let error = editor.refused("textDocument/rename", rename);
    assert!(error.contains("`own` already means something else"), "{error}");
    editor.close();
}
