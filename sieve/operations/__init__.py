"""Operations on indexes. Most modules implement one statement, such as CREATE or VACUUM."""
