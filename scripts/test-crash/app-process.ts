// What the app processes have in common: each begins with the settings of its parent, answers its questions, and ends with it.
import type { DynamicModule } from '@nestjs/common';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { storageOptions } from './engines.js';
import { withFault } from './injected-faults.js';
import { tellParent, type AppEvent, type AppSettings, type FromParent, type Question } from './messages.js';

export function beginApp(): AppSettings {
  process.on('disconnect', () => process.exit()); // an app without its parent
  return JSON.parse(process.argv[2] ?? '') as AppSettings;
}

export async function pluginOf({ options, fault, ...settings }: AppSettings): Promise<DynamicModule> {
  const { storage, ...key } = await storageOptions(settings);
  return DebateSpaceModule.forRoot({ ...options, ...key, storage: withFault(fault, storage) });
}

/** @param answerTo the parent gets no answer where it rejects */
export function answerParent(answerTo: (question: Question) => Promise<unknown>): void {
  const answer = async (message: FromParent): Promise<void> => {
    if (!('question' in message)) return;
    const { question, ...what } = message;
    tellParent({ question, answer: await answerTo(what).catch(() => undefined) });
  };
  process.on('message', (message) => {
    void answer(message as FromParent);
  });
}

export function tell(event: AppEvent): void {
  tellParent({ event });
}
