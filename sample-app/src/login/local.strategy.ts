import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-local';
import { DEMO_PASSWORD, demoUser, type DemoUser } from './demo-users.js';

@Injectable()
export class LocalStrategy extends PassportStrategy(Strategy) {
  validate(uid: string, password: string): DemoUser | false {
    return password === DEMO_PASSWORD ? (demoUser(uid) ?? false) : false;
  }
}
