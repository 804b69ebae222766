use half::bf16;
use tensilo::*;

#[test]
fn smoke() {
    for profile in Profile::ALL {
        let schema = Schema::new([
            ColumnSchema::tensor("x", DType::Bf16, Shape::fixed(&[3])).cast_from(DType::F32).nullable(),
            ColumnSchema::utf8("t").nullable(),
            ColumnSchema::tensor("r", DType::I32, Shape::new([Extent::Varying, Extent::Fixed(2), Extent::Varying])),
        ]);
        let options = WriterOptions::new().profile(profile).chunk_bytes(100);
        let mut w = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
        for i in 0..1000u32 {
            let x = [i as f32, 1.1, -0.0];
            let s = format!("text {i}");
            let e = [i % 3, i % 5];
            let r: Vec<i32> = (0..(e[0] * e[1] * 2) as i32).collect();
            let x = if i % 7 == 0 { Value::NULL } else { Value::tensor(&x) };
            w.push(&[x, Value::text(&s), Value::ragged(&r, &e)]).unwrap();
            if i == 500 {
                w.commit().unwrap();
            }
        }
        let bytes = w.finish().unwrap().sink.0;
        let r = Reader::from_bytes(bytes).unwrap();
        assert_eq!(r.sample_count(), 1000);
        let mut x = r.column("x").unwrap().cursor();
        let mut out = [bf16::ZERO; 3];
        for i in (0..1000u64).rev() {
            let got = x.read_into(i, &mut out).unwrap();
            assert_eq!(got.is_none(), i % 7 == 0);
            if got.is_some() {
                assert_eq!(out[0], bf16::from_f32(i as f32));
            }
        }
        let mut t = r.column("t").unwrap().cursor();
        assert_eq!(t.read(77).unwrap().as_str().unwrap(), Some("text 77"));
        let mut rr = r.column("r").unwrap().cursor();
        assert_eq!(rr.read(14).unwrap().shape(), &[2, 2, 4]);
        let mut b = ColumnBuffer::new();
        rr.gather_into(&[999, 14, 14, 0], &mut b).unwrap();
        assert_eq!(b.extents(), &[0, 4, 2, 4, 2, 4, 0, 0]);
        assert_eq!(b.offsets(), &[0, 0, 16, 32, 32]);
        println!("{:?}", r.column("x").unwrap().facts());
        if profile == Profile::Raw {
            assert!(r.column("t").unwrap().view(5).unwrap().is_some());
        }
    }
}
