// A loop of 1 ms that allocates, writes, and waits for a lock.
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};

#[inline(never)]
fn step(number: u64, log: &Mutex<Vec<String>>, out: &mpsc::Sender<String>) {
    let text = format!("cycle {number}");
    let mut kept = log.lock().unwrap();
    kept.push(text.clone());
    if kept.len() > 1000 {
        kept.clear();
    }
    drop(kept);
    out.send(text).unwrap();
}

fn main() {
    let log = Arc::new(Mutex::new(vec![]));
    let (out, received) = mpsc::channel();
    let held = log.clone();
    std::thread::spawn(move || loop {
        let kept = held.lock().unwrap();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(3) {}
        std::hint::black_box(&kept);
        drop(kept);
        while received.try_recv().is_ok() {}
        std::thread::sleep(Duration::from_millis(20));
    });
    for number in 0.. {
        step(number, &log, &out);
        std::thread::sleep(Duration::from_millis(1));
    }
}
