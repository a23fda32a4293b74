use std::time::Duration;

use super::*;

const WANTED: Wanted = Wanted { bytes: 1000, inodes: 8 };

fn reading(free_bytes: u64, free_inodes: Option<u64>, reserve_stands: bool) -> Reading {
    Reading { free_bytes, free_inodes, reserve_stands }
}

#[test]
fn every_row_of_the_table_of_rooms_is_as_it_stands() {
    let low = Room::Low(Lack::Bytes { free: 1100, wanted: 1250 });
    let rows = [
        (Room::Plenty, reading(1000, Some(8), true), Room::Plenty),
        (Room::Plenty, reading(1000, None, true), Room::Plenty),
        (Room::Plenty, reading(999, Some(8), true), Room::Low(Lack::Bytes { free: 999, wanted: 1000 })),
        (Room::Plenty, reading(1000, Some(7), true), Room::Low(Lack::Inodes { free: 7, wanted: 8 })),
        (Room::Plenty, reading(5000, Some(99), false), Room::Full(Lack::Reserve { free: 5000, wanted: 2000 })),
        (low, reading(1100, Some(99), true), low),
        (low, reading(1250, Some(9), true), Room::Low(Lack::Inodes { free: 9, wanted: 10 })),
        (low, reading(1250, Some(10), true), Room::Plenty),
        (low, reading(0, Some(99), false), Room::Full(Lack::Reserve { free: 0, wanted: 2250 })),
        (Room::Full(Lack::Reserve { free: 0, wanted: 2250 }), reading(1250, None, true), Room::Plenty),
        (
            Room::Full(Lack::Inodes { free: 0, wanted: 10 }),
            reading(2000, Some(3), false),
            Room::Full(Lack::Inodes { free: 3, wanted: 10 }),
        ),
    ];
    for (before, reading, after) in rows {
        assert_eq!(next(before, reading, WANTED), after, "{before:?} {reading:?}");
    }
}

#[test]
fn a_disk_that_is_full_never_says_that_enough_is_free() {
    let full = next(Room::Plenty, reading(4224 * 1024, Some(99), false), Wanted { bytes: 4160 * 1024, inodes: 8 });
    assert_eq!(
        full.to_string(),
        "the disk is full: the reserve is not there, 4224 KiB are free, 8320 KiB are wanted for it and beside it; \
         only results are stored, in what the reserve left"
    );
}

#[test]
fn work_is_promised_only_while_the_reserve_stands() {
    let lack = Lack::Bytes { free: 0, wanted: 1 };
    let rows = [(Room::Plenty, true, true), (Room::Low(lack), false, true), (Room::Full(lack), false, false)];
    for (room, new_work, promises) in rows {
        assert_eq!((room.takes_new_work(), room.can_promise()), (new_work, promises), "{room:?}");
    }
}

#[test]
fn a_reserve_takes_blocks_and_files_stays_over_a_restart_and_gives_all_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let wanted = Wanted { bytes: 64 * 1024, inodes: 3 };
    let mut reserve = Reserve::at(folder.path().join("reserve"));
    assert!(!reserve.stands(wanted));
    reserve.hold(wanted).expect("there is room");
    let blocks = std::fs::metadata(folder.path().join("reserve/blocks")).expect("it is there");
    assert!(std::os::unix::fs::MetadataExt::blocks(&blocks) * 512 >= wanted.bytes, "only a length, no blocks");
    drop(reserve);

    let mut reserve = Reserve::at(folder.path().join("reserve"));
    assert!(reserve.stands(wanted) && !reserve.stands(Wanted { inodes: 4, ..wanted }));
    reserve.hold(Wanted { bytes: 128 * 1024, inodes: 4 }).expect("it grows");
    reserve.release();
    let left = std::fs::metadata(folder.path().join("reserve/blocks")).expect("it is there");
    assert_eq!(std::os::unix::fs::MetadataExt::blocks(&left), 0);
    assert_eq!(std::fs::read_dir(folder.path().join("reserve")).expect("it is there").count(), 1);
    reserve.hold(wanted).expect("it comes back");
    assert!(reserve.stands(wanted));
}

#[test]
fn a_gauge_puts_the_reserve_aside_before_it_says_that_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let wanted = Wanted { bytes: 64 * 1024, inodes: 3 };
    let mut gauge = Gauge::new(folder.path().to_owned());
    let watch = gauge.watch();
    gauge.look(Duration::ZERO, wanted);
    assert_eq!(*watch.borrow(), Room::Plenty);
    assert!(folder.path().join("reserve/blocks").exists());
    gauge.release(Duration::from_millis(10), wanted);
    assert!(!watch.borrow().can_promise(), "{:?}", watch.borrow());
    assert!(!gauge.look(Duration::from_millis(20), wanted), "too early to look again");
    assert!(gauge.look(Duration::from_secs(1), wanted));
    assert_eq!(*watch.borrow(), Room::Plenty);
}

#[test]
fn descriptors_keep_a_sixteenth_free() {
    assert_eq!(Descriptors::judge(960, 1024), Descriptors::Enough);
    assert_eq!(Descriptors::judge(961, 1024), Descriptors::Low { open: 961, limit: 1024 });
    assert_eq!(Descriptors::judge(49, 64), Descriptors::Low { open: 49, limit: 64 });
    assert!(Descriptors::now().are_enough());
}
