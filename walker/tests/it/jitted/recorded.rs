//! Methods of real processes.

use super::*;
use crate::jitted::recording::Recording;

const RECORDINGS: [(&str, (u16, u16)); 4] = [
    ("coreclr-3.1.23-linux", (3, 1)),
    ("net-9.0.7-linux", (9, 0)),
    ("net-10.0.9-linux", (10, 0)),
    ("net-11.0.0-linux", (11, 0)),
];

#[test]
fn every_recorded_method_is_read_with_the_size_that_the_runtime_reported() {
    for (name, (major, minor)) in RECORDINGS {
        let recording = Recording::new(name);
        let layout =
            CodeHeaderLayout::of_version(major, minor).unwrap_or_else(|| stated(&recording));
        assert!(recording.methods.len() >= 13, "{name}");
        let dynamic = recording.methods.iter().filter(|code| code.name.contains("dynamicClass"));
        assert!(dynamic.count() >= 4, "{name}: dynamic methods and IL stubs");
        for code in &recording.methods {
            // Without and with the size.
            let method = JittedMethod::read(&recording, &layout, code.start, None).unwrap();
            assert_eq!(
                method.code_range(),
                code.start..code.start + u64::from(code.size),
                "{code:?}"
            );
            let known = JittedMethod::read(&recording, &layout, code.start, Some(code.size));
            assert_eq!(known.unwrap(), method);
            let wrong = JittedMethod::read(&recording, &layout, code.start, Some(code.size + 1));
            let (start, size, expected) = (code.start, code.size, code.size + 1);
            assert_eq!(wrong, Err(JittedCodeError::CodeSize { start, size, expected }));
        }
    }
}

#[test]
fn recorded_funclets_are_entries_of_their_own() {
    for (name, _) in RECORDINGS {
        let recording = Recording::new(name);
        let layout = CodeHeaderLayout::CORE_3_1_TO_10;
        let read = |start| JittedMethod::read(&recording, &layout, start, None).unwrap();
        let methods = recording.methods.iter().map(|code| read(code.start));
        let mut with_funclets = 0;
        for method in methods.filter(|method| method.functions().len() > 1) {
            with_funclets += 1;
            let last = method.functions().iter().last().unwrap();
            let address = method.base() + u64::from(last.end) - 1;
            assert_eq!(method.find_function(address), Some(last), "{name}");
            assert_eq!(method.find_function(address + 1), None, "{name}");
        }
        assert!(with_funclets >= 2, "{name}: {with_funclets}");
    }
}

#[test]
fn recorded_stub_blocks_are_named_and_not_read_as_methods() {
    for (name, _) in RECORDINGS {
        let recording = Recording::new(name);
        assert!(recording.stubs.len() >= 3, "{name}");
        for (kind, code) in &recording.stubs {
            let layout = CodeHeaderLayout::CORE_3_1_TO_10;
            let error = JittedMethod::read(&recording, &layout, code.start, None).unwrap_err();
            let (start, kind) = (code.start, StubBlockKind(*kind));
            assert_eq!(error, JittedCodeError::StubBlock { start, kind }, "{code:?}");
            assert!(kind.name_until_net_10().is_some());
        }
    }
}

#[test]
fn an_address_within_recorded_code_is_no_start() {
    for (name, _) in RECORDINGS {
        let recording = Recording::new(name);
        for code in &recording.methods {
            for start in code.start + 1..code.start + u64::from(code.size).min(200) {
                let layout = CodeHeaderLayout::CORE_3_1_TO_10;
                let method = JittedMethod::read(&recording, &layout, start, None);
                assert!(method.is_err(), "{name}: {start:#x} {method:?}");
            }
        }
    }
}

#[test]
fn recorded_methods_are_regions_side_by_side() {
    let recording = Recording::new("net-9.0.7-linux");
    let layout = CodeHeaderLayout::CORE_3_1_TO_10;
    let mut map = CodeMap::new();
    for code in &recording.methods {
        let method = JittedMethod::read(&recording, &layout, code.start, None).unwrap();
        map.insert(method.region(Convention::SystemV).unwrap()).unwrap();
    }
    for code in &recording.methods {
        let last = code.start + u64::from(code.size) - 1;
        let (region, function) = map.find_function(last).unwrap();
        assert_eq!((region.start(), region.last()), (code.start, last));
        assert!(function.contains(region.rva(last).unwrap()));
        assert!(region.bytes_from(function.unwind_info).unwrap().starts_with(&[0x19]));
    }
    assert_eq!(map.len(), recording.methods.len());
}

/// Returns the layout that the recorded runtime states.
fn stated(recording: &Recording) -> CodeHeaderLayout {
    let descriptor = ContractDescriptor::read(recording, recording.descriptor).unwrap();
    *ExecutionManager::new(&descriptor).unwrap().code_header()
}

#[test]
fn net_10_and_11_find_each_recorded_method_from_an_address_in_it() {
    for (name, version) in [
        ("net-10.0.9-linux", ContractVersion::Number(2)),
        ("net-10.0.9-windows", ContractVersion::Number(2)),
        ("net-11.0.0-linux", ContractVersion::C(1)),
    ] {
        finds_each_recorded_method(&Recording::new(name), version);
    }
}

fn finds_each_recorded_method(recording: &Recording, version: ContractVersion) {
    let descriptor = ContractDescriptor::read(recording, recording.descriptor).unwrap();
    assert_eq!(descriptor.contract("ExecutionManager"), Ok(version));
    let manager = ExecutionManager::new(&descriptor).unwrap();
    assert_eq!(*manager.code_header(), CodeHeaderLayout::CORE_3_1_TO_10);
    for code in &recording.methods {
        let size = u64::from(code.size);
        for address in [code.start, code.start + size / 2, code.start + size - 1] {
            let found = manager.find(recording, address).unwrap();
            let Some(CodeAt::Method(method)) = found else { panic!("{code:?}: {found:?}") };
            assert_eq!(method.code_range(), code.start..code.start + size, "{code:?}");
        }
    }
    for (kind, code) in &recording.stubs {
        let found = manager.find(recording, code.start).unwrap();
        let (start, kind) = (code.start, StubBlockKind(*kind));
        assert_eq!(found, Some(CodeAt::StubBlock { start, kind }), "{code:?}");
    }
}

#[test]
fn net_9_has_a_descriptor_without_a_map_of_code() {
    let recording = Recording::new("net-9.0.7-linux");
    let descriptor = ContractDescriptor::read(&recording, recording.descriptor).unwrap();
    assert_eq!(descriptor.contract("Thread"), Ok(ContractVersion::Number(1)));
    assert_eq!(descriptor.field("Thread", "OSId"), Ok(296));
    assert_eq!(descriptor.global("ObjectHeaderSize"), Ok(8));
    let error = ExecutionManager::new(&descriptor).unwrap_err();
    assert_eq!(error, ContractError::MissingContract { name: "ExecutionManager" });
}

#[test]
fn net_core_3_1_has_no_descriptor() {
    let recording = Recording::new("coreclr-3.1.23-linux");
    let error = ContractDescriptor::read(&recording, 0x1000).unwrap_err();
    assert_eq!(error, ContractError::Unreadable(Unreadable { address: 0x1000, len: 8 }));
}
