//! The system: Windows.

use clr_sampler::os::{
    self, OwnProcess, ThreadHandle, file_bytes, images, insert_image, loads, own_stack, own_tid,
    tasks,
};
use clr_unwind::{CodeMap, Memory as _, Unreadable};
use std::sync::atomic::Ordering;

#[test]
fn a_suspended_thread_stands_on_its_own_stack() {
    let over = std::sync::atomic::AtomicBool::new(false);
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            send.send((own_tid(), own_stack())).unwrap();
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (tid, stack) = receive.recv().unwrap();
        assert!(tasks().contains(&tid) && tasks().contains(&own_tid()));
        let thread = ThreadHandle::open(tid).unwrap();
        assert_eq!(os::stack_of_task(tid), stack);
        thread.suspend().unwrap();
        let context = thread.context().unwrap();
        let mut top = [0; 8];
        let read = OwnProcess.read(context.registers.rsp(), &mut top);
        thread.resume().unwrap();
        over.store(true, Ordering::Relaxed);
        assert!(stack.unwrap().contain(context.registers.rsp()));
        assert_eq!(read, Ok(()));
        let own = a_suspended_thread_stands_on_its_own_stack as *const () as u64;
        let image = images().into_iter().find(|image| image.code.contains(&own)).unwrap();
        assert!(image.code.contains(&image.unwind_table));
        assert!(context.registers.rip != 0);
    });
}

#[test]
fn nothing_is_read_at_0() {
    let mut bytes = [7; 2];
    assert_eq!(OwnProcess.read(8, &mut bytes), Err(Unreadable { address: 8, len: 2 }));
}

#[test]
fn images_are_mapped_as_their_files() {
    let loaded = loads();
    assert!(loaded.0 > 0);
    let images = images();
    let ntdll = images.iter().find(|image| image.path.to_lowercase().ends_with("ntdll.dll"));
    let file = file_bytes(&ntdll.unwrap().path).unwrap();
    let mut map = CodeMap::new();
    insert_image(&mut map, ntdll.unwrap().base, file).unwrap();
    assert_eq!(map.len(), 1);
}
