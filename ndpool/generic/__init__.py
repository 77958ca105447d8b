"""The primitives on the Array API standard alone: for any library, at any rank; the ground for all backends."""
