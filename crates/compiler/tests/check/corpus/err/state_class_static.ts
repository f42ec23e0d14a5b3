class Counter {
  static count = 0;
  static next(): number {
    return ++Counter.count;
  }
}

/** Counts in a class. */
export default (): number => Counter.next();
