//! The format of <https://www.speedscope.app/file-format-schema.json>: one sampled profile, whose
//! samples are the different stacks, weighted with their counts.

use super::{Label, Profile};
use serde_json::{Value, json};

pub(super) fn write(profile: &Profile, title: &str) -> String {
    let frame = |label: &Label| match label.file.as_str() {
        "" => json!({ "name": label.name }),
        file => json!({ "name": label.name, "file": file }),
    };
    let frames: Vec<Value> = profile.labels.iter().map(frame).collect();
    let samples: Vec<&Vec<u32>> = profile.stacks.keys().collect();
    let weights: Vec<u64> = profile.stacks.values().copied().collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "clr-recorder",
        "name": title,
        "shared": { "frames": frames },
        "profiles": [{
            "type": "sampled",
            "name": title,
            "unit": "none",
            "startValue": 0,
            "endValue": weights.iter().sum::<u64>(),
            "samples": samples,
            "weights": weights,
        }],
    });
    format!("{file}\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use serde_json::{Value, json};

    #[test]
    fn the_file_is_json_with_stacks_from_the_root() {
        let file: Value = serde_json::from_str(&super::write(&example(), "a \"title\"")).unwrap();
        assert_eq!(file["name"], "a \"title\"");
        let frames = &file["shared"]["frames"];
        assert_eq!(frames[1], json!({ "name": "<a;b>\"\\\n é", "file": "app.dll" }));
        let profile = &file["profiles"][0];
        assert_eq!((&profile["type"], &profile["unit"]), (&json!("sampled"), &json!("none")));
        assert_eq!((&profile["startValue"], &profile["endValue"]), (&json!(0), &json!(3)));
        assert_eq!(profile["samples"], json!([[0, 1], [0, 1, 2]]));
        assert_eq!(profile["weights"], json!([2, 1]));
    }
}
