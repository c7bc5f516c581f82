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
        "exporter": "clr-sampler",
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
