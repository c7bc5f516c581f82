//! The lives of objects.

use super::*;
use clr_runtime::HeapKind;

/// Returns the numbers of the objects that are alive at the end of each GC of a program whose first method calls the second one,
/// then collects.
fn alive_after_gcs(
    made: Vec<Statement>,
    collections: &[Call],
    generation: Generation,
) -> Vec<Vec<u64>> {
    let mut body = vec![runtime(New, None), Statement::Call(CallForm::Near, FunctionIndex(1))];
    body.extend(collections.iter().map(|kind| runtime(*kind, None)));
    let functions =
        vec![function("App.Main", CodeKind::Jit, body), function("App.Make", CodeKind::Jit, made)];
    let mut alive = Vec::new();
    run(&Program { functions, ..Program::default() }, generation, |world, callback| {
        if callback == "GarbageCollectionFinished" {
            let objects = world.as_synced().objects.borrow();
            alive.push(objects.alive().map(|(number, _)| number).collect());
        }
    });
    alive
}

#[test]
fn an_object_lives_as_long_as_its_method_or_what_refers_to_it() {
    let new = || runtime(New, None);
    let handled = || vec![new(), runtime(Call::CreateHandle, None), new()];
    let referred =
        || vec![new(), runtime(Call::NewReferring, None), runtime(Call::CreateHandle, None)];
    for generation in Generation::ALL {
        let after = |made, collections: &[Call]| alive_after_gcs(made, collections, generation);
        // The first one is of the method that collects.
        assert_eq!(after(vec![new(), new()], &[Call::Collect]), [[1]], "{generation}");
        assert_eq!(after(handled(), &[Call::Collect]), [[1, 2]], "{generation}: a handle");
        let ends = [Call::DestroyHandle, Call::Collect];
        assert_eq!(after(handled(), &ends), [[1]], "{generation}: no handle any more");
        assert_eq!(after(referred(), &[Call::Collect]), [[1, 2, 3]], "{generation}: a reference");
        let collects = vec![new(), runtime(Call::Collect, None)];
        assert_eq!(after(collects, &[Call::Collect]), [vec![1, 2], vec![1]], "{generation}");
    }
}

#[test]
fn a_gc_of_the_youngest_collects_what_was_made_since_the_last_one() {
    let made = || vec![runtime(New, None), runtime(Call::Collect, None), runtime(New, None)];
    let both = [Call::CollectYoungest, Call::Collect];
    let alive = alive_after_gcs(made(), &both, Generation::Net10Unix);
    assert_eq!(alive, [vec![1, 2], vec![1, 2], vec![1]]);
}

#[test]
fn objects_are_made_in_heaps_with_classes_and_references() {
    for generation in Generation::ALL {
        let body = vec![
            runtime(New, Some(1)),
            runtime(Call::NewLarge, None),
            runtime(Call::NewPinned, None),
            runtime(Call::NewReferring, None),
            runtime(New, None),
        ];
        let functions = vec![
            function("App.Main", CodeKind::Jit, body),
            function("Acme.Box..ctor", CodeKind::Jit, vec![Statement::Work(1)]),
        ];
        let mut found = Vec::new();
        run(&Program { functions, ..Program::default() }, generation, |world, callback| {
            if callback == "ObjectAllocated" {
                let objects = world.as_synced().objects.borrow();
                let last = objects.get(objects.made()).unwrap();
                found.push((last.class != 0, last.heap, last.refers_to));
            }
        });
        let has_pinned = generation.family().is_core_since(5);
        let pinned = if has_pinned { HeapKind::Pinned } else { HeapKind::Generations };
        let small = HeapKind::Generations;
        let expected = [
            (true, small, 0),
            (false, HeapKind::Large, 0),
            (false, pinned, 0),
            (false, small, 3),
            (false, small, 0),
        ];
        assert_eq!(found, expected, "{generation}");
    }
}
