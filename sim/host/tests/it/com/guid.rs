//! Ids as texts.

use clr_com::Guid;

#[test]
fn a_guid_is_read_and_printed() {
    let text = "b446462d-bd22-41dd-872d-dc714c49eb56";
    let guid = Guid::parse(&text.to_uppercase()).unwrap();
    assert_eq!(guid.to_string(), text);
    assert_eq!((guid.data1, guid.data2, guid.data3), (0xB446_462D, 0xBD22, 0x41DD));
    assert_eq!(guid.data4, [0x87, 0x2D, 0xDC, 0x71, 0x4C, 0x49, 0xEB, 0x56]);
}

#[test]
fn other_texts_are_refused() {
    for text in [
        "",
        "b446462d-bd22-41dd-872d-dc714c49eb5",
        "b446462dxbd22-41dd-872d-dc714c49eb56",
        "b446462-dbd22-41dd-872d-dc714c49eb56",
        "g446462d-bd22-41dd-872d-dc714c49eb56",
    ] {
        assert_eq!(Guid::parse(text), None, "{text}");
    }
}
