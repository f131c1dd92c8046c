//! Writes the dashboards of `deploy/grafana`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, text) in dashboards::files() {
        std::fs::write(folder.join(&name), text)?;
        println!("{name}");
    }
    Ok(())
}
