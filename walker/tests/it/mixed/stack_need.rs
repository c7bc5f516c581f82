//! The stack need of walks, in a build for this test.

use super::*;
use clr_coroutine::Stacks;

/// Maximum of a walk in bytes.
const LIMIT: usize = 4096;

/// Walks of 16 frames in a handler, with the mock's part of reading the context.
#[test]
fn a_walk_in_a_handler_needs_little_stack() {
    let mut ips = vec![NATIVE + 0x20];
    ips.extend((1..16).map(|n| returns_to(if n % 3 == 0 { MANAGED } else { NATIVE }, n)));
    let mut mock = Mock::new(&ips);
    mock.knows_managed = true;
    let map = mock.map();
    for policy in Policy::ALL {
        let walker = Walker::new(&mock, &map, policy);
        let mut buffer = WalkBuffer::new(32);
        let used = Stacks::new(256 << 10).used_by(|| {
            let _ = walker.take(&mock, &mut buffer);
        });
        println!("{policy:?}: {used:?} bytes");
        if policy == Policy::Signal
            && let Ok(used) = used
        {
            assert!(used < LIMIT, "{used} bytes");
            let Ok(stack) = walker.stitch(&buffer);
            assert_eq!(stack.frames.len(), ips.len());
        }
    }
}
