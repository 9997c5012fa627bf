//! A headless Chromium that a test steers by the DevTools protocol, over a pair of pipes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Names it goes by. The first is Debian's smallest package.
const NAMES: [&str; 5] = ["chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// The browser of this machine: what `JAXPRISM_BROWSER` names, or the first that is in the path.
pub fn find() -> Option<PathBuf> {
    if let Some(browser) = std::env::var_os("JAXPRISM_BROWSER") {
        return Some(browser.into());
    }
    let folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// A browser with one page.
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    last: u64,
    /// What the page complained about: console messages, exceptions, refused loads and scripts, dialogs.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Opens a file in a window of that size, once it is loaded.
    pub fn open(browser: &Path, page: &Path, width: u32, height: u32) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken on the descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>&2"])
            .arg(browser)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args(["--no-first-run", "--disable-extensions", "--disable-background-networking"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(fs::File::create(profile.path().join("stderr")).unwrap()))
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser = Self { process, to, from, session: String::new(), last: 0, complaints: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"].iter().for_each(|domain| _ = browser.call(domain, json!({})));
        browser.resize(width, height);
        browser.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        while browser.read()["method"] != "Page.loadEventFired" {}
        browser
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub fn dark(&mut self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        self.call("Emulation.setEmulatedMedia", json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] }));
    }

    /// What an expression of JavaScript comes to.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Clicks as a user does, in the middle of the first element of that selector.
    pub fn click(&mut self, selector: &str) {
        let at = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'nearest' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let count = u8::from(kind != "mouseMoved");
            let event =
                json!({ "type": kind, "x": at[0], "y": at[1], "button": if count > 0 { "left" } else { "none" }, "clickCount": count });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key as a user does.
    pub fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            _ => 9,
        };
        for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// A picture of the window, as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let data = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        from_base64(data["data"].as_str().unwrap())
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.to.write_all(&[message.to_string().as_bytes(), b"\0"].concat()).unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message; notes what the page complains about.
    fn read(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        let Some((0, text)) = bytes.split_last() else {
            panic!("the browser ended: {}", fs::read_to_string(self._profile.path().join("stderr")).unwrap_or_default())
        };
        let message: Value = serde_json::from_slice(text).unwrap();
        let method = message["method"].as_str().unwrap_or_default();
        let complains =
            ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"].contains(&method);
        let url = message["params"]["request"]["url"].as_str().unwrap_or("file:");
        if complains || (method == "Network.requestWillBeSent" && !url.starts_with("file:")) {
            self.complaints.push(message.to_string());
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> =
        text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)).map(|digit| digit as u32).collect();
    let bytes = |group: &[u32]| {
        let bits = (0..4).fold(0, |bits, place| bits << 6 | group.get(place).copied().unwrap_or(0));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(bytes).collect()
}
