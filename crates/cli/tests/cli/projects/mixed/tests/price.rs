#[test]
fn counts_cents() {
    assert_eq!(shop::price(1.5), "150 ct");
}
