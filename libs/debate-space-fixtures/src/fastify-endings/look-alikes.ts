import type { FastifyEnding } from './ending.js';

/** The session stays as it is. */
export const lookAlikes: readonly FastifyEnding[] = [
  {
    name: 'touch',
    ends: false,
    act: ({ session }) => {
      session.touch();
    },
  },
  { name: 'reload', ends: false, act: ({ session }) => session.reload() },
  { name: 'an ordinary save', ends: false, act: ({ session }) => session.save() },
  {
    name: 'a change of something else',
    ends: false,
    act: ({ session }) => {
      Object.assign(session, { basket: 3 });
    },
  },
  {
    name: 'a handler that throws',
    ends: false,
    act: () => {
      throw new Error('nothing to do with sessions');
    },
  },
];
