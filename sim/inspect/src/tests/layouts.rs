use super::writer::{CoreWriter, Image};
use crate::layouts::Layout;
use crate::{InspectError, Runtime};
use clr_dump::CoreDump;
use clr_unwind::ImageIdentity;
use clr_walker::jitted::contracts::{ContractDescriptor, ContractVersion, ExecutionManager};

const PATH: &str = "/rt/libcoreclr.so";
/// The build id of .NET 8.0.34's libcoreclr.so, as `readelf -n` prints it.
const NET8: &str = "d2529b38862d9b522a8367dd2c7ad146ba135ec8";

/// Finds the runtime of a process whose libcoreclr.so has this build id, and no descriptor.
fn find(build_id: &str) -> Result<Runtime, InspectError> {
    let mut file = Image::file(1);
    for (at, place) in file[0x290..0x2A4].iter_mut().enumerate() {
        *place = u8::from_str_radix(&build_id[2 * at..2 * at + 2], 16).unwrap();
    }
    let core = Image::map(CoreWriter::loaded(), PATH).page(Image::BASE, &file[..0x1000]).write();
    let find = |path: &str, _: Option<&ImageIdentity>| (path == PATH).then_some(file.as_slice());
    let files: &dyn clr_dump::Files<'_> = &find;
    Runtime::find(&CoreDump::open(&core, files).unwrap())
}

#[test]
fn a_known_build_without_a_descriptor_has_its_layout() {
    let runtime = find(NET8).unwrap();
    assert_eq!(runtime.path(), PATH);
    assert_eq!(runtime.descriptor().global("ThreadStore"), Ok(Image::BASE + 0x6A_1A18));
    assert_eq!(runtime.descriptor().field("Thread", "OSId"), Ok(424));
    assert!(ExecutionManager::new(runtime.descriptor()).is_ok());
}

#[test]
fn an_unknown_build_without_a_descriptor_is_refused() {
    let other = NET8.replace('d', "e");
    assert_eq!(find(&other).unwrap_err(), InspectError::UnknownBuild);
}

#[test]
fn what_the_runtime_states_comes_before_a_layout() {
    let mut descriptor = ContractDescriptor::empty();
    descriptor.add_field("Thread", "OSId", 1);
    descriptor.add_global("ThreadStore", 2);
    descriptor.add_contract("Thread", 3);
    let id = ImageIdentity::of_file(&Image::file(1)).unwrap();
    assert!(Layout::of(id.build_id().unwrap()).is_none());
    Layout::all()[0].complete(&mut descriptor, 0x1000);
    assert_eq!(descriptor.field("Thread", "OSId"), Ok(1));
    assert_eq!(descriptor.global("ThreadStore"), Ok(2));
    assert_eq!(descriptor.contract("Thread"), Ok(ContractVersion::Number(3)));
    assert_eq!(descriptor.global("FinalizerThread"), Ok(0x1000 + 0x6A_1FA8));
}

/// The layouts are used by name: a name that is wrong would be missed by nobody.
#[test]
fn the_frames_of_layouts_are_kinds() {
    for layout in Layout::all() {
        assert!(layout.frames().iter().all(|(name, _)| crate::frames::is_kind(name)));
    }
}
