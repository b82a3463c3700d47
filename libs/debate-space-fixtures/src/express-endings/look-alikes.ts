import { reload, save } from './acts.js';
import type { ExpressEnding } from './ending.js';

/** The session stays as it is. */
export const lookAlikes: readonly ExpressEnding[] = [
  {
    name: 'touch',
    core: true,
    ends: false,
    act: (request) => {
      request.session.touch();
    },
  },
  { name: 'reload', ends: false, act: (request) => reload(request) },
  { name: 'an ordinary save', core: true, ends: false, act: (request) => save(request) },
  {
    name: 'a change of something else',
    core: true,
    ends: false,
    act: (request) => {
      Object.assign(request.session, { basket: 3 });
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
