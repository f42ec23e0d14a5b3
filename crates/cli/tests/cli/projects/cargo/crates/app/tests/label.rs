#[test]
fn marks_a_slug() {
    assert_eq!(shop_app::label("Ink"), "#ink");
}
