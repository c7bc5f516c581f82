use super::*;

fn sample() -> Metadata {
    let mut metadata = Metadata::default();
    let module = metadata.add(Table::Module);
    metadata.set_string(module, Module::Name, "Acme.dll");
    let mvid = metadata.guids.add([7; 16]);
    metadata.set(module, Module::Mvid, mvid);
    for (name, methods) in [("<Module>", 0), ("Handler", 2), ("Worker", 1)] {
        let one = metadata.add(Table::TypeDef);
        metadata.set_string(one, TypeDef::Name, name);
        metadata.begin_list(one, Table::Field);
        metadata.begin_list(one, Table::Method);
        for number in 0..methods {
            let method = metadata.add_child(one, Table::Method).unwrap();
            metadata.set_string(method, Method::Name, &format!("{name}{number}"));
            metadata.set_blob(method, Method::Signature, &method_signature(false, number));
            metadata.begin_list(method, Table::Param);
        }
    }
    metadata
}

fn names(metadata: &Metadata, parent: Token) -> Vec<&str> {
    let methods = metadata.children(parent, Table::Method);
    methods.iter().map(|method| metadata.string(*method, Method::Name)).collect()
}

#[test]
fn every_table_has_its_number_and_a_key_of_its_own() {
    for (number, table) in Table::ALL.into_iter().enumerate() {
        assert_eq!(table as usize, number, "{}", table.name());
        assert!(table.key().is_none_or(|key| key < table.columns().len()));
    }
}

#[test]
fn what_is_written_is_read_again() {
    let metadata = sample();
    let again = read(&write(&metadata)).unwrap();
    for table in Table::ALL {
        assert_eq!(again.cells(table), metadata.cells(table), "{}", table.name());
    }
    assert_eq!(names(&again, token(Table::TypeDef, 2)), ["Handler0", "Handler1"]);
    assert_eq!(again.guids.get(1), [7; 16]);
}

#[test]
fn every_column_of_every_table_is_written_and_read() {
    let mut metadata = Metadata::default();
    for table in Table::ALL {
        for row in 1..=2 {
            metadata.add(table);
            for (index, column) in table.columns().iter().enumerate() {
                let value = match column.kind {
                    Kind::Coded(coded) => token(*coded.tables().last().unwrap(), row),
                    Kind::U8 => 0x11,
                    _ => 0x1234 + row,
                };
                // The last tag of one set has no table.
                if !matches!(column.kind, Kind::Coded(Coded::CustomAttributeType)) {
                    metadata.set_cell(table, row, index, value);
                }
            }
        }
    }
    let again = read(&write(&metadata)).unwrap();
    for table in Table::ALL {
        assert_eq!(again.cells(table), metadata.cells(table), "{}", table.name());
    }
}

#[test]
fn a_method_goes_to_its_type_whatever_was_added_before() {
    let mut metadata = sample();
    let handler = token(Table::TypeDef, 2);
    let method = metadata.add_child(handler, Table::Method).unwrap();
    metadata.set_string(method, Method::Name, "Late");
    assert_eq!(row_of(method), 4);
    assert_eq!(names(&metadata, handler), ["Handler0", "Handler1", "Late"]);
    assert_eq!(names(&metadata, token(Table::TypeDef, 3)), ["Worker0"]);
    assert_eq!(metadata.parent(method), Some(handler));
    assert_eq!(metadata.parent(token(Table::Method, 3)), Some(token(Table::TypeDef, 3)));
    let again = read(&write(&metadata)).unwrap();
    assert_eq!(names(&again, handler), ["Handler0", "Handler1", "Late"]);
}

#[test]
fn heaps_keep_their_places() {
    let mut metadata = sample();
    let first = metadata.blob(token(Table::Method, 1), Method::Signature).as_ptr();
    for number in 0_u32..1000 {
        metadata.blobs.add_blob(&number.to_le_bytes());
    }
    assert_eq!(metadata.blob(token(Table::Method, 1), Method::Signature).as_ptr(), first);
    let text: Vec<u16> = "Grüße".encode_utf16().collect();
    let offset = metadata.user_strings.add_user_string(&text, 1);
    assert_eq!(metadata.user_strings.blob(offset).len(), 11);
    assert_eq!(metadata.user_strings.blob(offset)[10], 1);
    assert_eq!(metadata.user_strings.add_user_string(&text, 1), offset);
}

#[test]
fn numbers_are_compressed_as_the_standard_says() {
    for (value, bytes) in [
        (0x03, &[0x03][..]),
        (0x7F, &[0x7F]),
        (0x80, &[0x80, 0x80]),
        (0x2E57, &[0xAE, 0x57]),
        (0x3FFF, &[0xBF, 0xFF]),
        (0x4000, &[0xC0, 0x00, 0x40, 0x00]),
        (0x1FFF_FFFF, &[0xDF, 0xFF, 0xFF, 0xFF]),
    ] {
        assert_eq!(compress(value), bytes);
        assert_eq!(decompress(bytes), Some((value, bytes.len())));
    }
    assert_eq!(decompress(&[0xFF]), None);
    assert_eq!(decompress(&[]), None);
}

#[test]
fn bodies_have_their_size() {
    let small = Il::default().string(0x7000_0001).call(0x0600_0001).end();
    assert_eq!(small[0], 12 << 2 | 2);
    assert_eq!(body_size(&small), Some(small.len()));
    let large = (0..20).fold(Il::default(), |il, _| il.call(0x0600_0001)).end();
    assert_eq!(body_size(&large), Some(12 + 101));
    assert_eq!(body_size(&large[..50]), None);
    // A section of exceptions with one small clause.
    let mut guarded = large.clone();
    guarded[0] |= 8;
    guarded.resize(guarded.len().next_multiple_of(4), 0);
    guarded.extend([1, 16, 0, 0]);
    guarded.extend([0; 12]);
    assert_eq!(body_size(&guarded), Some(116 + 16));
}

#[test]
fn an_image_has_its_parts_at_their_places() {
    let mut metadata = sample();
    let bodies = [Some(Il::default().end()), None, Some(Il::default().end())];
    for format in [Format::Pe32, Format::Pe32Plus { machine: 0x8664 }] {
        let image = Image::new(&mut metadata, &bodies, format, true);
        assert_eq!(metadata.get(token(Table::Method, 1), Method::RVA), 0x2050);
        assert_eq!(metadata.get(token(Table::Method, 3), Method::RVA), 0x2054);
        assert_eq!(image.at(0x2054)[..2], [6, 0x2A]);
        for layout in [Layout::Flat, Layout::Loaded] {
            let bytes = image.bytes(layout);
            let (rva, size) = image.metadata();
            let start = image.offset(rva, layout) as usize;
            let again = read(&bytes[start..start + size as usize]).unwrap();
            assert_eq!(names(&again, token(Table::TypeDef, 3)), ["Worker0"]);
            let body = image.offset(0x2054, layout) as usize;
            assert_eq!(bytes[body..body + 2], [6, 0x2A]);
        }
    }
}

#[test]
fn bytes_that_are_cut_off_are_an_error() {
    let bytes = write(&sample());
    for len in 0..bytes.len() {
        // The last stream may end with what fills it up.
        let _ = read(&bytes[..len]);
    }
    assert_eq!(read(&[]), Err(MetadataError::NoRoot));
    assert!(matches!(read(&bytes[..bytes.len() / 2]), Err(MetadataError::Short(_))));
}

#[test]
fn changed_bytes_are_read_or_refused() {
    let bytes = write(&sample());
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut changed = bytes.clone();
            changed[at] = value;
            if let Ok(metadata) = read(&changed) {
                for one in metadata.tokens(Table::TypeDef) {
                    names(&metadata, one);
                }
            }
        }
    }
}
