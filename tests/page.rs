//! The page of `size --html` in a real browser: areas are bytes, zooming works by mouse and key, nothing is loaded, and names from the file do not run.
//!
//! Without Chromium these tests are ignored, and say so. `JAXPRISM_BROWSER` names one that must be there. `JAXPRISM_PICTURES` names a folder for pictures.

#[path = "common/browser.rs"]
mod browser;
#[path = "common/room.rs"]
mod room;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

use browser::Browser;
use jaxprism::Exported;
use jaxprism::pieces::Pieces;
use room::{DEMO, Room, export};

/// What a hostile export calls its function, and all its other names that it can choose.
const HOSTILE: &str = "</script><script>document.title=1;alert(1)</script><img src=x onerror=alert(2)>\"'`${alert(3)}";

type Test = fn(&Path);

fn main() -> ExitCode {
    let tests: [(&str, Test); 6] = [
        ("areas_are_bytes", areas_are_bytes),
        ("a_click_zooms_and_the_path_leads_back", a_click_zooms_and_the_path_leads_back),
        ("keys_do_all_that_the_mouse_does", keys_do_all_that_the_mouse_does),
        ("levels_of_gradients_are_rectangles", levels_of_gradients_are_rectangles),
        ("it_fits_a_phone_and_a_dark_room", it_fits_a_phone_and_a_dark_room),
        ("hostile_names_are_text", hostile_names_are_text),
    ];
    let found = browser::find();
    if found.is_none() {
        eprintln!(
            "SKIPPED: the page of `size --html` in a browser, since there is none; `apt-get install chromium-headless-shell` has one"
        );
    }
    let trial = |(name, test): (&str, Test)| {
        let path = found.clone();
        let run = move || {
            test(&path.ok_or(Failed::from("no browser"))?);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(found.is_none())
    };
    libtest_mimic::run(&Arguments::from_args(), tests.map(trial).into()).exit_code()
}

/// Writes the page of an export, and opens it.
fn open(browser: &Path, input: &[u8], name: &str, (width, height): (u32, u32)) -> (Room, Browser) {
    let room = Room::new();
    fs::write(room.path(name), input).unwrap();
    room.run(&["size", name, "--html", "page.html"]).done();
    let page = room.path("page.html");
    let browser = Browser::open(browser, &page, width, height);
    (room, browser)
}

/// Keeps a picture for whoever wants to look.
fn picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("JAXPRISM_PICTURES") {
        fs::write(PathBuf::from(folder).join(format!("{name}.png")), browser.picture()).unwrap();
    }
}

/// The rectangles that are shown: bytes, area and label; and the area around them.
fn tiles(browser: &mut Browser) -> (Vec<(f64, f64, String)>, f64) {
    let found = browser.evaluate(
        "[[...document.querySelectorAll('#map > .tile')].map(e => { const r = e.getBoundingClientRect(); \
         return [+e.dataset.bytes, r.width * r.height, e.getAttribute('aria-label')]; }), \
         (r => r.width * r.height)(document.querySelector('#map').getBoundingClientRect())]",
    );
    let tile = |tile: &Value| (tile[0].as_f64().unwrap(), tile[1].as_f64().unwrap(), tile[2].as_str().unwrap().to_owned());
    (found[0].as_array().unwrap().iter().map(tile).collect(), found[1].as_f64().unwrap())
}

/// Checks that the rectangles fill the area, each in proportion to its bytes, none over another; returns the bytes.
fn check_areas(browser: &mut Browser) -> f64 {
    let (tiles, area) = tiles(browser);
    let bytes: f64 = tiles.iter().map(|tile| tile.0).sum();
    let filled: f64 = tiles.iter().map(|tile| tile.1).sum();
    assert!((filled / area - 1.0).abs() < 0.02, "{filled} of {area} is filled");
    for (own, has, label) in &tiles {
        let wanted = own / bytes * area;
        // A browser rounds to parts of a pixel on each side.
        assert!((has - wanted).abs() < 0.02 * wanted + 30.0, "{label}: {has}, not {wanted}");
    }
    let overlaps = browser.evaluate(
        "(() => { const r = [...document.querySelectorAll('#map > .tile')].map(e => e.getBoundingClientRect()); \
         return r.some((a, i) => r.some((b, j) => i < j && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.6 \
         && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.6)); })()",
    );
    assert_eq!(overlaps, false);
    bytes
}

fn caption(browser: &mut Browser) -> String {
    browser.evaluate("document.querySelector('#caption').textContent").as_str().unwrap().to_owned()
}

fn focused(browser: &mut Browser) -> String {
    browser.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName").as_str().unwrap().to_owned()
}

fn areas_are_bytes(path: &Path) {
    let input = export(DEMO);
    let (_room, mut browser) = open(path, &input, "model.jax_exported", (1200, 900));
    assert_eq!(check_areas(&mut browser), input.len() as f64);
    picture(&mut browser, "demo");
    // As much in another shape.
    browser.resize(700, 900);
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_eq!(check_areas(&mut browser), input.len() as f64);
    let rows = browser.evaluate("[...document.querySelectorAll('#rows tr')].map(e => +e.children[1].textContent.replaceAll(',', ''))");
    assert_eq!(rows.as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).sum::<u64>(), input.len() as u64);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

fn a_click_zooms_and_the_path_leads_back(path: &Path) {
    let (_room, mut browser) = open(path, &export(DEMO), "model.jax_exported", (1200, 900));
    let size = jaxprism::size(&export(DEMO), &jaxprism::SizeOptions::default()).unwrap();
    let constants = size.levels[0].sections.constants as f64;
    browser.click("[aria-label^='constants,']");
    assert!(caption(&mut browser).starts_with("constants · 3.3 KiB"), "{}", caption(&mut browser));
    assert_eq!(check_areas(&mut browser), constants);
    // A rectangle without anything inside tells what it is.
    browser.click("[aria-label^='f32[16,16],']");
    let tip = browser.evaluate("document.querySelector('#tip').innerText").as_str().unwrap().to_owned();
    for line in ["f32[16,16]", "bytes", "of the file", "of constants", "in @main", "make.py:64:11"] {
        assert!(tip.contains(line), "{line:?} is not in {tip}");
    }
    picture(&mut browser, "constants");
    browser.click("#path button");
    assert!(caption(&mut browser).starts_with("All of the file"));
    browser.click("#rows button");
    assert!(caption(&mut browser).starts_with("operations"), "{}", caption(&mut browser));
    assert_eq!(check_areas(&mut browser), size.levels[0].sections.operations as f64);
    picture(&mut browser, "operations");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

fn keys_do_all_that_the_mouse_does(path: &Path) {
    let (_room, mut browser) = open(path, &export(DEMO), "model.jax_exported", (1200, 900));
    // The path of one step, then the rectangles from the largest on.
    browser.press("Tab");
    browser.press("Tab");
    assert!(focused(&mut browser).starts_with("operations, "), "{}", focused(&mut browser));
    let tip = browser.evaluate("!document.querySelector('#tip').hidden && document.querySelector('#tip b').textContent");
    assert_eq!(tip, "operations");
    browser.press("Tab");
    browser.press("Enter");
    assert!(caption(&mut browser).starts_with("constants"));
    assert!(focused(&mut browser).starts_with("f32[16,16], "), "{}", focused(&mut browser));
    browser.press("Escape");
    assert!(caption(&mut browser).starts_with("All of the file"));
    assert!(focused(&mut browser).starts_with("constants, "), "{}", focused(&mut browser));
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

fn levels_of_gradients_are_rectangles(path: &Path) {
    let input = export("vjp.jax-0.12.0.1.jax_exported");
    let (_room, mut browser) = open(path, &input, "vjp", (1200, 900));
    assert_eq!(check_areas(&mut browser), input.len() as f64);
    picture(&mut browser, "gradients");
    browser.click("[aria-label^='level 2: gradient,']");
    browser.click("[aria-label^='operations,']");
    let size = jaxprism::size(&input, &jaxprism::SizeOptions::default()).unwrap();
    assert_eq!(check_areas(&mut browser), size.levels[2].sections.operations as f64);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

fn it_fits_a_phone_and_a_dark_room(path: &Path) {
    let (_room, mut browser) = open(path, &export(DEMO), "model.jax_exported", (375, 740));
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 375);
    check_areas(&mut browser);
    picture(&mut browser, "phone");
    let back = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.evaluate(back), "rgb(255, 255, 255)");
    browser.dark(true);
    assert_eq!(browser.evaluate(back), "rgb(21, 23, 26)");
    picture(&mut browser, "dark");
    browser.resize(1200, 900);
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    picture(&mut browser, "dark-wide");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// The demo with names that want to run.
fn hostile() -> Vec<u8> {
    let room = Room::new();
    let text = room.run(&["print", "model.jax_exported", "--constants", "all", "--locations"]).done();
    let name = HOSTILE.replace('"', "\\22");
    let text = text.replace("@threefry2x32", &format!("@\"{name}\"")).replace("make.py", &name);
    fs::write(room.path("hostile.mlir"), text).unwrap();
    room.run(&["opt", "hostile.mlir", "-o", "hostile.mlirbc"]).done();
    let (demo, module) = (export(DEMO), fs::read(room.path("hostile.mlirbc")).unwrap());
    let mut exported = Exported::read(&demo).unwrap();
    exported.module = Pieces::borrowed(&module);
    exported.function_name = HOSTILE.into();
    exported.write().unwrap().to_vec()
}

fn hostile_names_are_text(path: &Path) {
    let input = hostile();
    let name = "<img src=x onerror=alert(4)>'.jax_exported";
    let (room, mut browser) = open(path, &input, name, (1200, 900));
    let page = fs::read_to_string(room.path("page.html")).unwrap();
    assert_eq!(page.matches("</script").count(), 2, "the data ends its element");
    assert!(!page.contains("<img"), "markup from the file");
    assert_eq!(browser.evaluate("document.title"), format!("{name}: sizes"));
    for selector in ["[aria-label^='operations,']", "[aria-label^='locations,']"] {
        browser.click(selector);
        let rows = browser.evaluate("[...document.querySelectorAll('#rows tr')].map(e => e.children[0].textContent)");
        assert!(rows.as_array().unwrap().iter().any(|row| row.as_str().unwrap().trim_start_matches('@') == HOSTILE), "{rows}");
        check_areas(&mut browser);
        browser.click("#path button");
    }
    assert_eq!(browser.evaluate("document.querySelectorAll('script').length + ' ' + document.images.length"), "2 0");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    // The policy would stop what got through all the same: neither scripts, nor handlers, nor pictures are let in.
    browser.evaluate(
        "window.ran = false; \
         document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' })); \
         document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = true\"><b onclick=\"window.ran = true\" id=b>b</b>'); \
         document.querySelector('#b').click()",
    );
    browser.evaluate("new Promise(done => setTimeout(done, 100))");
    assert_eq!(browser.evaluate("window.ran"), false);
    assert!(browser.complaints.iter().any(|line| line.contains("Content Security Policy")), "{:?}", browser.complaints);
}
