/** Reports at the end of a run, in one line each, which tests were skipped for lack of a server or a browser: see program.ts. */
export default class SkippedReporter {
  onRunComplete(_contexts, { testResults }) {
    const skipped = new Map();
    for (const { status, title, ancestorTitles } of testResults.flatMap((file) => file.testResults)) {
      const [, program] = /^needs (.+)$/.exec(title) ?? [];
      if (status !== 'pending' || program === undefined) continue;
      skipped.set(program, [...(skipped.get(program) ?? []), ancestorTitles.join(' ')]);
    }
    for (const [program, names] of skipped)
      console.error(`SKIPPED for lack of ${program}: ${names.join('; ')}`);
  }
}
