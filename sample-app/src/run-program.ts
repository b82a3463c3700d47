import { DebateSpaceError } from 'nestjs-debate-space';
import { StartError } from './start-error.js';

/** Runs a program of this app. An error gives exit code 1, and its message alone where the message says how to fix it. */
export async function runProgram(program: () => Promise<void>): Promise<void> {
  try {
    await program();
  } catch (error) {
    const isClear = error instanceof StartError || error instanceof DebateSpaceError;
    console.error(isClear ? error.message : error);
    process.exit(1); // a connection that is open already would keep the process
  }
}
