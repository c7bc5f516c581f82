//! Jitted bodies by function, as the callbacks of the profiling interface report them.

use super::*;

const LAYOUT: CodeHeaderLayout = CodeHeaderLayout::CORE_3_1_TO_10;

/// Adds a method without funclets, of 0x10 bytes at `rva`, with its header at `header` (VA).
fn add_method(process: &mut Process, rva: u32, header: u64, method_desc: u64) -> u64 {
    let start = BASE + u64::from(rva);
    process.write_u64s(start - 8, &[header]);
    process.write(start, &[0xC3; 0x10]);
    process.write_u64s(header + 0x18, &[method_desc]);
    process.write_u32s(header + 0x20, &[1, rva, rva + 0x10, rva + 0x10]);
    process.write(start + 0x10, &[0x19, 0, 0, 0, 0, 0, 0, 0]);
    start
}

#[test]
fn bodies_of_a_function_live_beside_each_other_until_it_is_unloaded() {
    let mut process = Process::with_method();
    let tier_1 = add_method(&mut process, 0x500, HEADER + 0x1000, METHOD_DESC);
    let other = add_method(&mut process, 0x600, HEADER + 0x2000, METHOD_DESC + 0x40);
    let (mut map, mut methods) = (CodeMap::new(), JittedMethods::new(LAYOUT, Convention::SystemV));
    for (function, start, size) in
        [(METHOD_DESC, START, 0x30), (METHOD_DESC, tier_1, 0x10), (METHOD_DESC + 0x40, other, 0x10)]
    {
        methods.compiled(&mut map, &process, function, start, Some(size)).unwrap();
    }
    assert_eq!(methods.bodies(METHOD_DESC), [START, tier_1]);
    assert_eq!(map.len(), 3);
    assert_eq!(map.find_function(START + 0x2F).unwrap().1.begin, 0x360);
    assert_eq!(map.find(tier_1 + 15).unwrap().0.base(), BASE);

    assert_eq!(methods.unloaded(&mut map, METHOD_DESC), 2);
    assert!(map.find(START).is_none() && map.find(tier_1).is_none());
    assert_eq!(map.len(), 1);
    assert_eq!(methods.unloaded(&mut map, METHOD_DESC), 0, "unloaded before");
    assert_eq!(methods.unload_where(&mut map, |function| function == METHOD_DESC + 0x40), 1);
    assert!(map.is_empty());
}

#[test]
fn code_of_another_function_is_refused() {
    let process = Process::with_method();
    let (mut map, mut methods) =
        (CodeMap::new(), JittedMethods::new(LAYOUT, Convention::WindowsX64));
    let (found, expected) = (METHOD_DESC, METHOD_DESC + 8);
    let error = methods.compiled(&mut map, &process, expected, START, None).unwrap_err();
    assert_eq!(error, JittedMethodsError::OtherFunction { start: START, found, expected });
    let error = methods.compiled(&mut map, &process, found, START, Some(1)).unwrap_err();
    assert!(matches!(error, JittedMethodsError::Code(JittedCodeError::CodeSize { .. })));
    assert!(
        map.is_empty() && methods.bodies(found).is_empty() && methods.bodies(expected).is_empty()
    );
}

#[test]
fn memory_that_is_used_again_belongs_to_the_later_function() {
    let mut process = Process::with_method();
    let (mut map, mut methods) = (CodeMap::new(), JittedMethods::new(LAYOUT, Convention::SystemV));
    methods.compiled(&mut map, &process, METHOD_DESC, START, None).unwrap();
    // Freed without a callback; then a dynamic method lies in the middle of the old code.
    let later = add_method(&mut process, 0x350, HEADER + 0x1000, METHOD_DESC + 0x80);
    methods.compiled(&mut map, &process, METHOD_DESC + 0x80, later, None).unwrap();
    assert_eq!(map.len(), 1);
    assert!(map.find(START).is_none());
    assert_eq!(methods.bodies(METHOD_DESC), [0; 0]);
    // The late news about the old function does not touch the new one.
    assert_eq!(methods.unloaded(&mut map, METHOD_DESC), 0);
    assert_eq!(map.find(later).unwrap().0.start(), later);
    // The same body again changes nothing.
    methods.compiled(&mut map, &process, METHOD_DESC + 0x80, later, None).unwrap();
    assert_eq!(methods.bodies(METHOD_DESC + 0x80), [later]);
}
