//! The lines of a trace.

use core::fmt;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// The first line: where the trace was made.
    Trace {
        /// Version of the format: 1.
        version: u32,
        /// The runtime: `CoreCLR 8.0.34`, or the name of a simulated one.
        runtime: String,
    },
    /// The name of an id, for all lines of the trace.
    Name {
        /// The id: `function#3`.
        id: String,
        /// Its name.
        name: String,
        /// The file name of its module, for functions and classes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        module: Option<String>,
    },
    /// The runtime calls the profiler.
    Enters {
        /// The thread.
        thread: String,
        /// The callback.
        callback: String,
        /// Arguments, as they are passed.
        arguments: Arguments,
    },
    /// The profiler has returned.
    Leaves {
        /// The thread.
        thread: String,
        /// The callback.
        callback: String,
        /// The HRESULT.
        result: String,
        /// Arguments that the profiler has written.
        arguments: Arguments,
    },
    /// The profiler calls the runtime.
    Calls {
        /// The thread.
        thread: String,
        /// The method.
        method: String,
        /// Arguments, as they are passed.
        arguments: Arguments,
    },
    /// The runtime has returned.
    Returns {
        /// The thread.
        thread: String,
        /// The method.
        method: String,
        /// The HRESULT.
        result: String,
        /// Arguments that the runtime has written, if the method has succeeded.
        arguments: Arguments,
    },
    /// `DoStackSnapshot` has reported a frame.
    Frame {
        /// The thread that walks.
        thread: String,
        /// The function; `null` for a marker.
        function: String,
        /// The answer of the profiler's callback.
        answer: String,
    },
    /// Calls that were not written, because they came faster than they could be.
    Lost {
        /// Their number.
        calls: u64,
    },
}

/// Arguments with their names, in the order of the method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments(pub Vec<(String, String)>);

impl Arguments {
    /// Returns the value of an argument.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Arguments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Arguments(all))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
