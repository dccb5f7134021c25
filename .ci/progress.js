/** Says how far a run of the tests is: a line for each tenth of the test files. */
export default class Progress {
  #ended = 0;
  #startedAt = Date.now();

  onTestFileResult(_test, _result, { numTotalTestSuites: files, numPassedTests: passed, numFailedTests: failed }) {
    this.#ended += 1;
    const tenth = (count) => Math.floor((10 * count) / files);
    if (tenth(this.#ended) === tenth(this.#ended - 1)) return;
    const seconds = Math.round((Date.now() - this.#startedAt) / 1_000);
    console.log(`${this.#ended} of ${files} files in ${seconds} s: ${passed} tests passed, ${failed} failed`);
  }
}
