"""Zachary's karate club: friendships between members, numbered from 1 as in the paper's matrix."""

# For each member, the friends with smaller numbers.
_EARLIER_FRIENDS = {
    2: (1,),
    3: (1, 2),
    4: (1, 2, 3),
    5: (1,),
    6: (1,),
    7: (1, 5, 6),
    8: (1, 2, 3, 4),
    9: (1, 3),
    10: (3,),
    11: (1, 5, 6),
    12: (1,),
    13: (1, 4),
    14: (1, 2, 3, 4),
    17: (6, 7),
    18: (1, 2),
    20: (1, 2),
    22: (1, 2),
    26: (24, 25),
    28: (3, 24, 25),
    29: (3,),
    30: (24, 27),
    31: (2, 9),
    32: (1, 25, 26, 29),
    33: (3, 9, 15, 16, 19, 21, 23, 24, 30, 31, 32),
    34: (9, 10, 14, 15, 16, 19, 20, 21, 23, 24, 27, 28, 29, 30, 31, 32, 33),
}

FRIENDSHIPS = tuple((member, friend) for member, friends in _EARLIER_FRIENDS.items() for friend in friends)

# Members who stayed with the instructor (member 1) after the club split; the others followed the officer (34).
WITH_INSTRUCTOR = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22})
