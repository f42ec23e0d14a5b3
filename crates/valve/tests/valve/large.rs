//! Many files.

use crate::support::World;

#[tokio::test]
async fn twenty_thousand_files() {
    let world = World::new("personas: [{name: rare, filters: ['**/needle*']}]");
    for folder in 0..200 {
        let folder = world.disk(&format!("src/{}/{folder}", folder % 7));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            std::fs::write(folder.join(format!("f{file}")), format!("{file}")).unwrap();
        }
    }
    world.write(".gitignore", "node_modules\n");
    assert_eq!(world.scan().await.files, 20_001);
    for file in (0..100).step_by(9) {
        world.write(&format!("src/3/3/f{file}"), "changed");
    }
    world.rename("src/5", "src/five");
    world.write("src/0/0/needle", "1");
    let report = world.scan().await;
    // Every seventh folder from the fifth on has moved, with a hundred files each.
    assert_eq!(report.changes, 12 + 1 + 2_800, "{report:?}");
    assert_eq!(world.told().await, ["rare: created src/0/0/needle"]);
    assert_eq!(world.scan().await.changes, 0);
}
