use jaxprism::{bytecode::Bytecode, ir};
fn run(bytes: &[u8]) -> Result<Vec<u8>, jaxprism::error::Error> {
    let b = Bytecode::read(bytes, 0)?;
    if std::env::var("PLAIN").is_ok() {
        return Ok(b.write()?.to_vec());
    }
    let t = std::time::Instant::now();
    let s = ir::Session::new(&b);
    let p = ir::import(&s, &b)?;
    let t1 = t.elapsed();
    let e = ir::export(&p, &b)?;
    let t2 = t.elapsed();
    let m = p.module.into_module().unwrap();
    drop(m);
    let t3 = t.elapsed();
    let w = e.write()?.to_vec();
    if std::env::var("TIME").is_ok() {
        eprintln!("import {t1:?} export {:?} free {:?} write {:?}", t2 - t1, t3 - t2, t.elapsed() - t3);
    }
    Ok(w)
}
fn main() {
    let (mut same, mut diff, mut err) = (0, 0, 0);
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        match run(&bytes) {
            Ok(out) => {
                if out == bytes {
                    same += 1
                } else {
                    diff += 1;
                    let i = out.iter().zip(&bytes).position(|(a, b)| a != b).unwrap_or(out.len().min(bytes.len()));
                    println!("DIFF {path} {} {} at {i}", bytes.len(), out.len());
                }
            }
            Err(e) => {
                err += 1;
                println!("ERR {path} {e:?}");
            }
        }
    }
    println!("same {same} diff {diff} err {err}");
}
