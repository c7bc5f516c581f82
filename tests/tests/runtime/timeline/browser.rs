//! Headless Chromium, driven through its DevTools protocol.

use super::*;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Timeout of any operation.
const PATIENCE: Duration = Duration::from_mins(2);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    calls: u32,
    session: Option<String>,
    /// Errors and all messages written to the console.
    pub(crate) complaints: Vec<String>,
    /// URLs that were requested, except for data in the page.
    pub(crate) requests: Vec<String>,
    loaded: bool,
    /// Folder with the page and the browser's profile.
    folder: tempfile::TempDir,
}

/// Returns the browser that `CLR_CHROMIUM` names, which must exist, or one that is found.
fn program() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("CLR_CHROMIUM") {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

impl Browser {
    /// Starts a browser.
    pub(crate) fn start() -> Self {
        let program = program().expect("Chromium");
        let folder = tempfile::tempdir().unwrap();
        // The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#])
            .arg(program)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"])
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--disable-quic", "--disable-sync"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--force-device-scale-factor=1", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("errors")).unwrap())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0) {
                let Ok(message) = message else { return };
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            calls: 0,
            session: None,
            complaints: Vec::new(),
            requests: Vec::new(),
            loaded: false,
            folder,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &target);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Calls a method of the protocol, and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.input, "{message}\0").unwrap();
        self.input.flush().unwrap();
        loop {
            let message = self.receive();
            if message["id"] == json!(self.calls) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Receives the next message, and records events of the page.
    fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let reported = std::fs::read_to_string(self.folder.path().join("errors"));
            panic!("no message from the browser: {error}\n{}", reported.unwrap_or_default())
        });
        let details = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded") => {
                self.complaints.push(details.to_string());
            }
            Some("Network.requestWillBeSent") => {
                let url = details["request"]["url"].as_str().unwrap();
                if !url.starts_with("data:") {
                    self.requests.push(url.to_owned());
                }
            }
            Some("Page.loadEventFired") => self.loaded = true,
            _ => {}
        }
        message
    }

    /// Opens a page at a fragment (`#…`).
    pub(crate) fn open(&mut self, page: &str, hash: &str) {
        let path = self.folder.path().join("page.html");
        std::fs::write(&path, page).unwrap();
        self.open_file(&path, hash);
    }

    /// Opens a file at a fragment.
    pub(crate) fn open_file(&mut self, path: &Path, hash: &str) {
        // Another fragment of the same page would not reload it.
        self.navigate("about:blank");
        self.requests.clear();
        self.navigate(&format!("file://{}{hash}", path.display()));
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_until(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != true {
            assert!(begin.elapsed() < PATIENCE, "{expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn navigate(&mut self, url: &str) {
        self.loaded = false;
        let answer = self.call("Page.navigate", &json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{answer}");
        let begin = Instant::now();
        while !self.loaded {
            assert!(begin.elapsed() < PATIENCE, "the page was not loaded");
            self.receive();
        }
    }

    /// Returns the value of an expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key, given by its name in events.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Home" => 36,
            "End" => 35,
            "Tab" => 9,
            letter => u32::from(letter.to_ascii_uppercase().as_bytes()[0]),
        };
        let mut event = json!({ "type": "keyDown", "key": key, "windowsVirtualKeyCode": code });
        if key.len() == 1 {
            event["text"] = json!(key);
        }
        self.call("Input.dispatchKeyEvent", &event);
        event["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", &event);
    }

    /// Clicks with the mouse at a place of the window (pixels).
    pub(crate) fn click(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1,
                "buttons": u32::from(kind == "mousePressed") });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Sets the system's color scheme, `light` or `dark`.
    pub(crate) fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Sets the size of the window (pixels).
    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Writes a screenshot to the folder that `CLR_SCREENSHOTS` names, if the variable is set.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("CLR_SCREENSHOTS") else { return };
        let answer = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        let bytes = answer["data"].as_str().unwrap().as_bytes();
        let bytes = data_encoding::BASE64.decode(bytes).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The process has already ended if it cannot be killed.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}
