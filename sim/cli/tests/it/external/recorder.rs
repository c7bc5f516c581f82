//! The recorder as a library.

use super::*;

/// The recorder's class.
pub(crate) const CLASS: &str = "{3c2a5b7e-6d0f-4f0e-9c51-0a6b9d3f2c11}";

/// Builds the recorder and returns the path of its library.
pub(crate) fn library() -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--offline", "-p", "clr-recorder", "--message-format=json"]);
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let library =
        messages.lines().find_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            let is_recorder = message["target"]["name"] == "clr_recorder";
            let files = message["filenames"].as_array().filter(|_| is_recorder)?;
            files.iter().filter_map(Value::as_str).map(PathBuf::from).find(|file| {
                file.extension().is_some_and(|end| end == std::env::consts::DLL_EXTENSION)
            })
        });
    library.expect("the build names its files")
}
