//! Pages of files against the same pages of dumps.

use crate::collection::Dump;
use clr_dump::StoppedProcess as _;
use clr_unwind::Memory as _;

/// Each byte of a mapped file that is in a dump, and that is known without it, must be the same.
#[test]
#[ignore = "needs the collection, in the folders that CLR_ORACLES and CLR_RUNTIMES name"]
fn pages_of_files_are_those_of_the_dump() {
    for dump in Dump::all() {
        let process = dump.open();
        let (mut same, mut unknown) = (0_u64, 0_u64);
        for mapping in process.mappings() {
            for address in mapping.range.clone().step_by(8) {
                if !process.is_dumped(address) {
                    continue;
                }
                let mut word = [0; 8];
                if process.read_file(address, &mut word).is_err() {
                    unknown += 1;
                    continue;
                }
                let dumped = process.read_u64(address).unwrap();
                let of_file = u64::from_le_bytes(word);
                assert_eq!(dumped, of_file, "{} {} {address:#x}", dump.name, mapping.path);
                same += 1;
            }
        }
        println!("{}: {same} words are the same, {unknown} are not known from files", dump.name);
        assert!(same > 100_000);
    }
}
