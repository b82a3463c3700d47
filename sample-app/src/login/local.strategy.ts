import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-local';
import { Accounts } from './accounts.js';
import type { User } from './user.js';

@Injectable()
export class LocalStrategy extends PassportStrategy(Strategy) {
  constructor(private readonly accounts: Accounts) {
    super();
  }

  async validate(uid: string, password: string): Promise<User | false> {
    return (await this.accounts.authenticate(uid, password)) ?? false;
  }
}
