import type { Command } from 'commander';
import type { CheckResult } from '../doctor/check.js';
import { addExamples } from '../examples.js';
import { Failure } from '../failure.js';
import { commandContext, type CliContext } from '../cli-context.js';
import { counted } from '../text.js';

/** Checks the configuration, the service and the storage. */
export function addDoctor(program: Command, cli: CliContext): void {
  const command = program
    .command('doctor')
    .description('check configuration, service and storage, and say how to fix each problem; touches no user')
    .action(async (_: object, invoked: Command) => {
      const { runChecks } = await import('../doctor/run-checks.js');
      const context = await commandContext(invoked, cli);
      const { output } = context;
      const results: CheckResult[] = [];
      for await (const result of runChecks(context)) {
        results.push(result);
        if (!output.json) output.answer(result, resultText(result));
      }
      if (output.json) output.answer(results, '');
      const problems = results.filter(({ ok }) => ok === false).length;
      if (problems > 0) throw new Failure('faults', `${counted(problems, 'problem')} found.`);
    });
  addExamples(command, 'doctor', 'doctor --config production.env --json');
}

function resultText({ check, ok, detail, hint }: CheckResult): string {
  const verdict = ok === null ? '–' : ok ? '✓' : '✗';
  const line = `${verdict} ${check.padEnd(20)}  ${detail}`;
  return hint === undefined ? line : `${line}\n${' '.repeat(24)}→ ${hint}`;
}
